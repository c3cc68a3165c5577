"""How long work takes on a device: warm, with cold caches, the host well ahead, the median of repeats."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Device", "Stopwatch", "Timing"]

_HEAD_START = 1.5
"""A flush must take this much longer than the host needs to issue it: below, a flush's own time is the host's."""

Work = Callable[[], object]


class Device(Protocol):
    """One stream of a device."""

    def flush(self) -> None:
        """Write more than the last-level cache holds: what was there is gone."""

    def mark(self) -> object:
        """Put a mark behind all work so far."""

    def between(self, first: object, second: object) -> float:
        """Seconds from one mark to another, once both are passed."""
        ...

    def wait(self) -> None:
        """Return when the stream is empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """What repeats say.

    Parameters
    ----------
    seconds : float
        their median [s]
    spread : float
        from their first to their third quartile, over the median
    """

    seconds: float
    spread: float


class Stopwatch:
    """Times work on a device.

    A mark stands before and after each repeat, so that a time is that from one launch to the next, as
    :class:`~clustersim.hardware.kernel_table.TimedKernel` has it. Between repeats the caches are flushed, as often as
    the host needs to issue the work: it is queued by then, and the host's time is not in the device's.

    Parameters
    ----------
    device : Device
    clock : callable
        seconds on the host
    warm_up, repeats : int
        runs that do not count, and runs that do

    Raises
    ------
    ValueError
        when there are no runs, or the host cannot get ahead of the device
    """

    def __init__(
        self, device: Device, clock: Callable[[], float] = time.perf_counter, *, warm_up: int = 5, repeats: int = 20
    ) -> None:
        if warm_up < 1 or repeats < 1:
            raise ValueError(f"warm_up, repeats: {warm_up}, {repeats} must be 1 or more")
        self.device, self.clock, self.warm_up, self.repeats = device, clock, warm_up, repeats
        flushing, issuing = self._measured(device.flush, ahead=1).seconds, self.to_issue(device.flush).seconds
        if flushing < _HEAD_START * issuing:
            raise ValueError(
                f"the host takes {issuing:.3g} s to issue a flush of {flushing:.3g} s: it never gets ahead"
            )
        self._ahead = flushing - issuing

    def on_device(self, work: Work) -> Timing:
        """The device's time of ``work``."""
        return self._measured(work, ahead=1 + math.ceil(self.to_issue(work).seconds / self._ahead))

    def to_issue(self, work: Work) -> Timing:
        """The host's time of ``work`` on an empty stream, not waiting for its end."""
        return self._repeated(work, until_done=False)

    def to_finish(self, work: Work) -> Timing:
        """The host's time of ``work`` on an empty stream and its end there: for copies that block the host."""
        return self._repeated(work, until_done=True)

    def _measured(self, work: Work, ahead: int) -> Timing:
        for _ in range(self.warm_up):
            work()
        self.device.wait()
        marks = []
        for _ in range(self.repeats):
            for _ in range(ahead):
                self.device.flush()
            first = self.device.mark()
            work()
            marks.append((first, self.device.mark()))
            self.device.wait()
        return _timing([self.device.between(*pair) for pair in marks])

    def _repeated(self, work: Work, *, until_done: bool) -> Timing:
        times = []
        for _ in range(self.warm_up + self.repeats):
            self.device.wait()
            began = self.clock()
            work()
            if until_done:
                self.device.wait()
            times.append(self.clock() - began)
        self.device.wait()
        return _timing(times[self.warm_up :])


def _timing(times: list[float]) -> Timing:
    median = statistics.median(times)
    low, _, high = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else times * 3
    return Timing(seconds=median, spread=(high - low) / median if median else 0.0)
