"""What a run's time is made of: kernels and collectives, each with how long it took and how well that is known."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.hardware.kernel import Kernel, Provenance

__all__ = ["TimedWork"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedWork:
    """All ops of a run that do the same: one shape of kernel on one device, or one size of collective of like groups.

    Parameters
    ----------
    job : int
        index into ``Record.jobs``
    category : str
        of :data:`clustersim.trace.schema.CATEGORIES`
    kind : str
        of kernel, collective, copy or drive access: ``gemm``, ``all_reduce``, ``h2d``; ``host`` and ``delay`` of others
    device : str
        name of the GPU's card; empty for a collective
    kernel : Kernel, optional
        one launch; None for what is no kernel
    axis : str
        mesh axis of a collective; empty for others
    nbytes, num_members, num_nodes : int
        of a collective: payload of a rank [B], ranks of the group, nodes that it spans; 0 for others
    seconds : float
        of all of them on all ranks in all steps, each alone on its device and links [s]
    provenance : {"measured", "interpolated", "modelled", "assumed"}
    spread : float
        standard deviation of the logarithm of the time
    """

    job: int
    category: str
    kind: str
    device: str = ""
    kernel: Kernel | None = None
    axis: str = ""
    nbytes: int = 0
    num_members: int = 0
    num_nodes: int = 0
    seconds: float
    provenance: Provenance
    spread: float
