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
    multicast : bool
        whether it adds up and copies what it passes between the GPUs on it (NVLink SHARP)
    reduction_bandwidth : float, optional
        what its reduction engine produces at most, of all the trees that it works for together [B/s of result]; None
        for a switch that does not reduce
    reduction_slots : int, optional
        trees that it works for at once
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    """

    name: str
    radix: int
    port_bandwidth: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")]
    multicast: bool = False
    reduction_bandwidth: Annotated[float, Unit("B/s")] | None = None
    reduction_slots: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "radix", "port_bandwidth")
        if not 0 <= self.latency < float("inf"):
            raise ValueError(f"latency: {self.latency} must be zero or positive, and finite")
        if self.reduction_bandwidth is not None:
            require_positive(self, "reduction_bandwidth")
        if self.reduction_slots is not None:
            require_positive(self, "reduction_slots")
        if (self.reduction_bandwidth is None) != (self.reduction_slots is None):
            raise ValueError(f"reduction_slots: {self.reduction_slots} must be given where reduction_bandwidth is")
