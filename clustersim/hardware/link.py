"""Links: NVLink, xGMI, NVLink-C2C, PCIe and network cables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from clustersim.hardware.checks import require_fractions, require_not_negative, require_positive
from clustersim.units import Unit

__all__ = ["Link"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One link; each direction has its own bandwidth.

    Parameters
    ----------
    name : str
        card name, ``nvlink4``
    bandwidth : float
        signalling rate of one direction of one link [B/s]
    efficiency : float
        fraction of it that payload reaches after packet headers and flow control, in (0, 1]
    return_efficiency : float, optional
        the same on the way back, from a GPU to its host, where that is another; None: alike both ways
    latency : float
        one way through the link [s]
    copy_latency : float
        fixed cost of a copy between a GPU and its host over it, beside that latency [s]: a copy of n bytes takes
        ``copy_latency + latency + n / payload_bandwidth``
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    """

    name: str
    bandwidth: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")]
    efficiency: float = 1.0
    return_efficiency: float | None = None
    copy_latency: Annotated[float, Unit("s")] = 0.0
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "bandwidth")
        require_not_negative(self, "latency", "copy_latency")
        require_fractions(self, "efficiency")
        if self.return_efficiency is not None:
            require_fractions(self, "return_efficiency")

    @property
    def payload_bandwidth(self) -> float:
        """What payload reaches in one direction [B/s]: ``bandwidth · efficiency``."""
        return self.bandwidth * self.efficiency

    @property
    def return_bandwidth(self) -> float:
        """What payload reaches on the way back [B/s]."""
        return self.bandwidth * (self.efficiency if self.return_efficiency is None else self.return_efficiency)
