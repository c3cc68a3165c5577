"""A CPU socket: cores, memory, and what each kind of host work reaches on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from clustersim.hardware.checks import require_fractions, require_positive
from clustersim.hardware.launch_times import LaunchTimes
from clustersim.hardware.work_rate import WorkRate
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
    vector_flop_per_s : float
        fp32 peak of all cores [FLOP/s]
    memory_efficiency : float
        fraction of the DRAM peak which streaming code reaches on all cores, in (0, 1]
    core_bandwidth : float, optional
        DRAM traffic of streaming code on one core alone [B/s]; None: one core reaches what all do
    work : Mapping[str, WorkRate]
        kinds of host work that are not plain streaming: ``adam``, counting 28 B a parameter (p, m, v, g read and p, m,
        v written in fp32), ``adam_torch``, ``adam_tuned``, ``serialise`` …
    pageable_bandwidth : float, optional
        at which one thread of the driver copies between memory that is not pinned and its own pinned buffer [B/s];
        None: not known, and then such copies are refused
    num_numa_nodes : int
        NUMA nodes with cores that the socket shows to its operating system
    launch : LaunchTimes, optional
        of one core; None: not known, and then nothing can be said of the host that issues kernels
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    name: str
    num_cores: int
    memory_bytes: Annotated[int, Unit("B")]
    memory_bandwidth: Annotated[float, Unit("B/s")]
    vector_flop_per_s: Annotated[float, Unit("FLOP/s")]
    memory_efficiency: float = 0.8
    core_bandwidth: Annotated[float | None, Unit("B/s")] = None
    work: Mapping[str, WorkRate] = field(default_factory=dict)
    pageable_bandwidth: Annotated[float | None, Unit("B/s")] = None
    num_numa_nodes: int = 1
    launch: LaunchTimes | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_positive(self, "num_cores", "memory_bytes", "memory_bandwidth", "vector_flop_per_s", "num_numa_nodes")
        require_fractions(self, "memory_efficiency")
        for name in ("core_bandwidth", "pageable_bandwidth"):
            if getattr(self, name) is not None:
                require_positive(self, name)

    @property
    def streaming_bandwidth(self) -> float:
        """DRAM traffic that streaming code reaches on all cores, which is what the socket's users share [B/s]."""
        return self.memory_bandwidth * self.memory_efficiency

    def rate(self, kind: str) -> WorkRate:
        """How fast a kind of host work runs; what the card says nothing of is plain streaming."""
        return self.work.get(kind) or WorkRate(efficiency=self.memory_efficiency, core_bandwidth=self.core_bandwidth)

    def core_rate(self, kind: str) -> float:
        """DRAM traffic of one core that does one kind of work alone [B/s]."""
        rate = self.rate(kind)
        if rate.core_bandwidth is not None:
            return rate.core_bandwidth
        whole = self.streaming_bandwidth if self.core_bandwidth is None else self.core_bandwidth
        return whole * rate.efficiency / self.memory_efficiency
