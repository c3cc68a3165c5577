"""What one of a rank's own ops takes alone on a device, and what it asks of the resources around it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clustersim.hardware.kernel import Cost, Provenance

__all__ = ["LocalCost", "whole_ns"]


@dataclass(frozen=True, slots=True)
class LocalCost:
    """One op alone on one kind of device.

    Attributes
    ----------
    ns : int
        duration [ns]; at least 1 for any work
    sm_ns : int
        the part of it that grows as SMs are taken by a collective [ns]
    bound : str
        what sets it: ``tensor``, ``vector``, ``hbm``, ``launch``, or the path of a copy
    provenance : dict[Provenance, float]
        seconds by provenance, for the coverage report [s]
    loads : tuple[tuple[str, int], ...]
        (local path, what is asked of it): bytes, or core-nanoseconds of ``cores``
    kernels : tuple[Cost, ...]
        of each kernel of a block of them, without the slowdown
    crowded_ns : int
        ``sm_ns`` times the device's crowding: while k of n SMs are taken, the op lasts k / (n - k) of it longer [ns]
    """

    ns: int
    sm_ns: int
    bound: str
    provenance: dict[Provenance, float]
    loads: tuple[tuple[str, int], ...] = ()
    kernels: tuple[Cost, ...] = ()
    crowded_ns: int = 0


def whole_ns(seconds: float) -> int:
    """Whole nanoseconds, rounded up; what floats round up is far inside the 2^-40 of head-room of resources."""
    return math.ceil(seconds * 1e9 * (1 - 2**-46))
