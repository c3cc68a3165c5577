"""A drive: half-duplex, with a read rate and a write rate of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from clustersim.hardware.checks import require_fractions, require_not_negative, require_positive
from clustersim.units import Unit

__all__ = ["Drive"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Drive:
    """One NVMe drive.

    Parameters
    ----------
    name : str
        card name
    capacity_bytes : int
        [B]
    read_bandwidth, write_bandwidth : float
        sustained sequential rates [B/s]; a drive that does both at once shares its time between them
    latency : float
        of one request [s]
    efficiency : float
        fraction of these rates that a file system and an I/O library leave, in (0, 1]
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    name: str
    capacity_bytes: Annotated[int, Unit("B")]
    read_bandwidth: Annotated[float, Unit("B/s")]
    write_bandwidth: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")]
    efficiency: float = 1.0
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "capacity_bytes", "read_bandwidth", "write_bandwidth")
        require_not_negative(self, "latency")
        require_fractions(self, "efficiency")
