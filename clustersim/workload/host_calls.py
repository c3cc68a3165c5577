"""What the host calls to issue ops, counted by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.kernel import Kernel
from clustersim.workload.arrays import Arrays
from clustersim.workload.captured import is_captured
from clustersim.workload.host_waits import is_forward
from clustersim.workload.layers.loss import LOSS
from clustersim.workload.op import Collective, Compute, HostLaunch

__all__ = [
    "LAUNCHES",
    "Launching",
    "calls_of",
    "captured_ops",
    "entry_calls",
    "graph_calls",
    "host_launch",
    "num_launches",
]

Launching = Literal["none", "eager", "layers", "modules", "compiled", "cuda_graphs"]
LAUNCHES = get_args(Launching)

_IN_LAYER = ("tp", "cp", "ep")
_BY_LAYERS = ("layers", "modules")


def num_launches(arrays: Arrays, ops: Sequence[int]) -> int:
    """Kernels, collectives and messages among some ops."""
    of = (arrays.ops[arrays.op[k]] for k in ops)
    return sum(sum(map(_issued, op.kernels)) + _looped(op.kernels) if isinstance(op, Compute) else 1 for op in of)


def host_launch(name: str, launching: Launching, calls: Counter[str]) -> HostLaunch:
    """The op that stands for some calls."""
    return HostLaunch(
        name=name,
        kind=launching,
        forward=calls["forward"],
        backward=calls["backward"],
        experts=calls["experts"],
        experts_backward=calls["experts_backward"],
        operators=calls["operators"],
        collectives=calls["collectives"],
        compiled=calls["compiled"],
        entries=calls["entries"],
        graphs=calls["graphs"],
        waits=calls["waits"],
    )


def calls_of(arrays: Arrays, ops: Sequence[int], launching: Launching, captured: NDArray[np.bool_]) -> Counter[str]:
    """Calls that issue some ops of one pass.

    The optimizer, and cross-entropy beside layers in Python, are operators: no layer's code stands around their
    kernels. A product that computes part by part beside its exchanges is one call with all of them: a ring's messages
    come with all parts of it but one, and so do parts of a collective, which share its name, but the first. What graphs
    hold, ``captured``, is not called by itself, see :func:`captured_ops`.
    """
    calls: Counter[str] = Counter()
    exchanged: set[str] = set()
    for k in ops:
        op = arrays.ops[arrays.op[k]]
        phase = arrays.phases[arrays.phase[k]]
        by_lines = phase == "optimizer" or (launching in _BY_LAYERS and isinstance(op, Compute) and op.name in LOSS)
        where = "operators" if by_lines else "forward" if is_forward(arrays, k, op) else "backward"
        if isinstance(op, Collective):
            again = op.axis == "tp" and op.name in exchanged
            exchanged.add(op.name)
            calls["collectives"] += not (again or (captured[k] and op.axis in _IN_LAYER))
            calls[where] -= op.axis == "tp" and (again or op.kind == "all_to_all") and not captured[k]
        elif isinstance(op, Compute) and not captured[k]:
            compiled = launching == "compiled" and phase != "optimizer"
            passes = sum(_issued(kernel) for kernel in op.kernels if kernel.kind == "memory" and compiled)
            calls["compiled"] += passes
            calls[where] += sum(map(_issued, op.kernels)) - passes
            calls["experts_backward" if where == "backward" else "experts"] += _looped(op.kernels)
        elif not isinstance(op, Compute):
            calls["operators"] += 1
    return calls


def captured_ops(arrays: Arrays, launching: Launching, cuda_graphs: Sequence[str]) -> NDArray[np.bool_]:
    """Ops that graphs hold, shape (n,): all but the update's, or those of some modules of layers."""
    updates = np.array([phase == "optimizer" for phase in arrays.phases], dtype=bool)[arrays.phase]
    if launching == "cuda_graphs":
        return ~updates
    of = np.array([is_captured(op, cuda_graphs) for op in arrays.ops], dtype=bool)[arrays.op]
    found: NDArray[np.bool_] = of & ~updates & (arrays.layer >= 0)
    return found


def _issued(kernel: Kernel) -> int:
    """Launches of a kernel that are calls of their own."""
    return 1 if kernel.looped else kernel.count


def _looped(kernels: Iterable[Kernel]) -> int:
    """Launches of some kernels that loops over experts make."""
    return sum(kernel.looped for kernel in kernels)


def entry_calls(launching: Launching) -> Counter[str]:
    """What entering a pass of a layer takes by itself."""
    if launching == "compiled":
        return Counter(entries=1)
    return graph_calls() if launching == "cuda_graphs" else Counter()


def graph_calls() -> Counter[str]:
    """What replaying a graph takes: a module's call."""
    return Counter(graphs=1, forward=1)
