"""A switch chip: NVSwitch, an InfiniBand or Ethernet switch, a PCIe switch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from clustersim.hardware.checks import require_positive
from clustersim.units import Unit

__all__ = ["Switch"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Switch:
    """One switch, non-blocking between its ports.

    Parameters
    ----------
    name : str
        card name, ``quantum-2``
    radix : int
        number of ports
    port_bandwidth : float
        one direction of one port [B/s]
    latency : float
        port to port [s]
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    """

    name: str
    radix: int
    port_bandwidth: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")]
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "radix", "port_bandwidth")
        if not 0 <= self.latency < float("inf"):
            raise ValueError(f"latency: {self.latency} must be zero or positive, and finite")
