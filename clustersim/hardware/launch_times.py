"""What a host takes to issue work to its GPU, by the way in which a framework runs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from clustersim.hardware.checks import require_not_negative
from clustersim.units import Unit

__all__ = ["LaunchTimes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchTimes:
    """Times of one host thread, each with the driver's own launch of the kernels.

    A kernel's time is that of a whole layer over the layer's kernels. It holds what a layer does beside launching them:
    calls of modules, views, allocations, what autograd records, checks and contexts in Python. Loops over one operator
    show less than half of it. None comes from the time of a step.

    Parameters
    ----------
    operator, operator_backward : float
        a kernel of a model that a tensor library runs line by line, forward and backward [s]
    layer, layer_backward : float
        a kernel of a framework whose layers are Python around single products and fused kernels (Megatron-LM) [s]
    module, module_backward : float
        a kernel of a framework whose layers also choose formats and kernels by themselves (Transformer Engine under
        Megatron-Core) [s]
    expert, expert_backward : float
        a further kernel of a module that launches one for each expert, with what lists of experts take in Python [s]
    hook, hook_backward : float
        what calling Python before and after each module, to gather and release its weights, takes a norm or a product
        with weights (DeepSpeed's ZeRO-3): that of a whole layer over these kernels of it, of which a backward pass has
        two for each product [s]
    collective : float
        a collective or message of a communication library, called through a tensor library [s]
    compiled : float
        a kernel of a compiled graph [s]
    entry : float
        a call of a compiled graph: its guards and arguments [s]
    graph : float
        a launch of a captured CUDA graph, however many kernels it holds [s]
    wait : float
        from the end of what the device does until a host that waits for it goes on [s]
    collection : float
        a collection of all garbage of a process in Python, which looks at every object of its libraries [s]

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    operator: Annotated[float, Unit("s")]
    operator_backward: Annotated[float, Unit("s")]
    layer: Annotated[float, Unit("s")]
    layer_backward: Annotated[float, Unit("s")]
    module: Annotated[float, Unit("s")]
    module_backward: Annotated[float, Unit("s")]
    expert: Annotated[float, Unit("s")]
    expert_backward: Annotated[float, Unit("s")]
    hook: Annotated[float, Unit("s")]
    hook_backward: Annotated[float, Unit("s")]
    collective: Annotated[float, Unit("s")]
    compiled: Annotated[float, Unit("s")]
    entry: Annotated[float, Unit("s")]
    graph: Annotated[float, Unit("s")]
    wait: Annotated[float, Unit("s")]
    collection: Annotated[float, Unit("s")]

    def __post_init__(self) -> None:
        require_not_negative(self, *(field.name for field in fields(self)))
