"""What launches and copies take: the host's time and the device's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from stopwatch import Device, Stopwatch

__all__ = ["HostNumber", "LaunchDevice", "copies", "launches"]

_IN_A_ROW = 256
"""Launches in a row: fewer than a stream's queue holds, so that the host never waits for room."""

_COPIED = tuple(2**power for power in (12, 16, 20, 24, 28))
Work = Callable[[], object]


class LaunchDevice(Device, Protocol):
    """A device with kernels, graphs and copies."""

    def tiny(self) -> None:
        """Launch the smallest kernel."""

    def graph(self, work: Work) -> Work:
        """What replays ``work`` in one launch."""
        ...

    def copy(self, source: str, target: str, nbytes: int) -> Work:
        """A copy of ``nbytes``."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HostNumber:
    """One row of the table beside the kernels.

    Parameters
    ----------
    quantity : str
    nbytes : int
        of a copy [B]; 0 for launches
    value : float
    unit : str
        ``us`` or ``GB/s``, 10⁹ bytes a second in one direction
    spread : float
        from the first to the third quartile of the times, over their median
    """

    quantity: str
    nbytes: int
    value: float
    unit: str
    spread: float


def launches(device: LaunchDevice, stopwatch: Stopwatch) -> Iterator[HostNumber]:
    """From one dependent kernel to the next, on its own and in a graph; the host's time of an eager op and a replay.

    The kernels are the smallest there are, so that what they do takes no time of note.
    """

    def row() -> None:
        for _ in range(_IN_A_ROW):
            device.tiny()

    replay = device.graph(row)
    for quantity, timing, over in (
        ("device, from one kernel to the next", stopwatch.on_device(row), _IN_A_ROW),
        ("device, from one kernel of a graph to the next", stopwatch.on_device(replay), _IN_A_ROW),
        ("host, to issue an op", stopwatch.to_issue(row), _IN_A_ROW),
        (f"host, to replay a graph of {_IN_A_ROW} kernels", stopwatch.to_issue(replay), 1),
    ):
        yield HostNumber(
            quantity=quantity, nbytes=0, value=timing.seconds / over * 1e6, unit="us", spread=timing.spread
        )


def copies(device: LaunchDevice, stopwatch: Stopwatch, num_devices: int = 1) -> Iterator[HostNumber]:
    """Bandwidth of copies from and to the host, within the device and, where there are several, to the next.

    Copies of pageable memory hold up the host, which stages them: their time is the host's.
    """
    ways = [("pinned", "device"), ("device", "pinned"), ("pageable", "device"), ("device", "pageable")]
    ways += [("device", "device"), *[("device", "device:1")] * (num_devices > 1)]
    for source, target in ways:
        measured = stopwatch.to_finish if "pageable" in (source, target) else stopwatch.on_device
        for nbytes in _COPIED:
            timing = measured(device.copy(source, target, nbytes))
            rate = nbytes / timing.seconds / 1e9
            yield HostNumber(
                quantity=f"copy, {source} to {target}", nbytes=nbytes, value=rate, unit="GB/s", spread=timing.spread
            )
