"""What a host takes to issue work to its GPU, by the way in which a framework runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from clustersim.hardware.checks import require_not_negative
from clustersim.units import Unit

__all__ = ["LaunchTimes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchTimes:
    """Times of one host thread, each with the driver's own launch of the kernels.

    They come from micro-benchmarks of single calls, never from the time of a step.

    Parameters
    ----------
    operator : float
        an operator of a tensor library that runs line by line, from its call in Python to the launch of its kernel [s]
    module : float
        a layer of a framework around one product: checks, contexts and a differentiable function in Python [s]
    compiled : float
        a kernel of a compiled graph [s]
    entry : float
        a call of a compiled graph: its guards and arguments [s]
    graph : float
        a launch of a captured CUDA graph, however many kernels it holds [s]
    wait : float
        from the end of what the device does until a host that waits for it goes on [s]

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    operator: Annotated[float, Unit("s")]
    module: Annotated[float, Unit("s")]
    compiled: Annotated[float, Unit("s")]
    entry: Annotated[float, Unit("s")]
    graph: Annotated[float, Unit("s")]
    wait: Annotated[float, Unit("s")]

    def __post_init__(self) -> None:
        require_not_negative(self, "operator", "module", "compiled", "entry", "graph", "wait")
