"""A CPU socket: cores, memory and what an optimizer step or a cast reaches on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from clustersim.hardware.checks import require_positive
from clustersim.hardware.launch_times import LaunchTimes
from clustersim.units import Unit

__all__ = ["CPU"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CPU:
    """One socket.

    Parameters
    ----------
    name : str
        card name
    num_cores : int
        physical cores of the socket
    memory_bytes : int
        DRAM attached to the socket [B]
    memory_bandwidth : float
        DRAM peak of the socket, read plus write [B/s]
    memory_efficiency : float
        fraction of that peak which streaming code reaches, in (0, 1]
    vector_flop_per_s : float
        fp32 peak of all cores [FLOP/s]
    adam_efficiency : float
        fraction of ``memory_bandwidth`` that a vectorised Adam step reaches, counting 28 B a parameter: it reads p, m,
        v, g and writes p, m, v in fp32
    launch : LaunchTimes, optional
        of one core; None: not known, and then nothing can be said of the host that issues kernels
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    """

    name: str
    num_cores: int
    memory_bytes: Annotated[int, Unit("B")]
    memory_bandwidth: Annotated[float, Unit("B/s")]
    vector_flop_per_s: Annotated[float, Unit("FLOP/s")]
    memory_efficiency: float = 0.8
    adam_efficiency: float = 0.45
    launch: LaunchTimes | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "num_cores", "memory_bytes", "memory_bandwidth", "vector_flop_per_s")
        for name in ("memory_efficiency", "adam_efficiency"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name}: {getattr(self, name)} must be a fraction in (0, 1]")
