"""How fast one kind of host work runs on a CPU: an optimizer step, a cast, a serialisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from clustersim.hardware.checks import require_fractions, require_not_negative, require_positive
from clustersim.units import Unit

__all__ = ["WorkRate"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkRate:
    """One kind of work on one socket, as bytes of DRAM traffic a second.

    Work of k threads alone takes ``latency + nbytes / min(k · core_bandwidth, efficiency · memory_bandwidth)``.

    Parameters
    ----------
    efficiency : float
        fraction of the socket's ``memory_bandwidth`` that all its cores together reach, in (0, 1]; a step that reads
        and writes more than it has to counts only what it has to
    core_bandwidth : float, optional
        of one core alone [B/s]; None: the same part of what streaming code reaches on one core as ``efficiency`` is of
        what it reaches on all
    latency : float
        of a call, however many bytes it moves [s]

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    efficiency: float
    core_bandwidth: Annotated[float | None, Unit("B/s")] = None
    latency: Annotated[float, Unit("s")] = 0.0

    def __post_init__(self) -> None:
        require_fractions(self, "efficiency")
        require_not_negative(self, "latency")
        if self.core_bandwidth is not None:
            require_positive(self, "core_bandwidth")
