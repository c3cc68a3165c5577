"""A network interface: one port of a network card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from clustersim.hardware.checks import require_positive
from clustersim.units import Unit

__all__ = ["NIC"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NIC:
    """One network port.

    Parameters
    ----------
    name : str
        card name, ``connectx-7``
    bandwidth : float
        line rate of one direction [B/s]
    efficiency : float
        fraction of it that RDMA payload reaches, in (0, 1]
    latency : float
        from memory to the wire or back, one side [s]
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    """

    name: str
    bandwidth: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")]
    efficiency: float = 1.0
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "bandwidth")
        if not 0 <= self.latency < float("inf"):
            raise ValueError(f"latency: {self.latency} must be zero or positive, and finite")
        if not 0 < self.efficiency <= 1:
            raise ValueError(f"efficiency: {self.efficiency} must be a fraction in (0, 1]")

    @property
    def payload_bandwidth(self) -> float:
        """What payload reaches in one direction [B/s]: ``bandwidth · efficiency``."""
        return self.bandwidth * self.efficiency
