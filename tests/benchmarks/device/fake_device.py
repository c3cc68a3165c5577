"""A device and a host made of two numbers: the time on the host's clock, and when the stream will be empty."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["FakeDevice"]

Work = Callable[[], object]


class FakeDevice:
    """A stream that runs behind its host.

    Parameters
    ----------
    issue : float
        the host's time of any launch [s]
    flush_seconds : float
        the device's time of a flush [s]
    """

    def __init__(self, issue: float = 5e-6, flush_seconds: float = 100e-6) -> None:
        self.issue, self.flush_seconds = issue, flush_seconds
        self.now = self.free_at = self.busy = 0.0
        self.cached = False
        self.num_runs = 0

    def clock(self) -> float:
        """The host's time [s]."""
        return self.now

    def launch(self, seconds: float, launches: int = 1) -> None:
        """Issue work of so many seconds on the device."""
        self.now += launches * self.issue
        self.free_at = max(self.free_at, self.now) + seconds
        self.busy += seconds

    def kernel(self, cold: float, warm: float | None = None, launches: int = 1) -> Work:
        """A kernel that takes ``warm`` [s] when nothing was flushed since it last ran."""

        def work() -> None:
            self.launch(warm if self.cached and warm is not None else cold, launches)
            self.cached, self.num_runs = True, self.num_runs + 1

        return work

    def flush(self) -> None:
        self.launch(self.flush_seconds)
        self.cached = False

    def mark(self) -> float:
        return max(self.free_at, self.now)

    def between(self, first: object, second: object) -> float:
        assert isinstance(first, float)
        assert isinstance(second, float)
        return second - first

    def wait(self) -> None:
        self.now = max(self.now, self.free_at)

    def tiny(self) -> None:
        self.launch(1e-6)

    def graph(self, work: Work) -> Work:
        """The work of one run, half as long, in one launch."""
        before = self.busy
        work()
        seconds = self.busy - before
        return lambda: self.launch(seconds / 2)

    def copy(self, source: str, target: str, nbytes: int) -> Work:
        """At 20 GB/s, half of that where a side is pageable, which blocks the host."""

        def work() -> None:
            self.launch(nbytes / (10e9 if "pageable" in (source, target) else 20e9))
            if "pageable" in (source, target):
                self.wait()

        return work
