"""What the host calls to issue ops, counted by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, get_args

from clustersim.workload.arrays import Arrays
from clustersim.workload.host_waits import is_forward
from clustersim.workload.layers.loss import LOSS
from clustersim.workload.op import Collective, Compute, HostLaunch

__all__ = ["LAUNCHES", "Launching", "calls_of", "entry_calls", "host_launch", "num_launches"]

Launching = Literal["none", "eager", "layers", "modules", "compiled", "cuda_graphs"]
LAUNCHES = get_args(Launching)

_IN_LAYER = ("tp", "cp", "ep")
_BY_LAYERS = ("layers", "modules")


def num_launches(arrays: Arrays, ops: Sequence[int]) -> int:
    """Kernels, collectives and messages among some ops."""
    of = (arrays.ops[arrays.op[k]] for k in ops)
    return sum(sum(kernel.count for kernel in op.kernels) if isinstance(op, Compute) else 1 for op in of)


def host_launch(name: str, launching: Launching, calls: Counter[str]) -> HostLaunch:
    """The op that stands for some calls."""
    return HostLaunch(
        name=name,
        kind=launching,
        forward=calls["forward"],
        backward=calls["backward"],
        operators=calls["operators"],
        collectives=calls["collectives"],
        compiled=calls["compiled"],
        entries=calls["entries"],
        graphs=calls["graphs"],
        waits=calls["waits"],
    )


def calls_of(arrays: Arrays, ops: Sequence[int], launching: Launching) -> Counter[str]:
    """Calls that issue some ops of one pass.

    The optimizer, and cross-entropy beside layers in Python, are operators: no layer's code stands around their
    kernels. A product that computes part by part beside its exchanges is one call with all of them: a ring's messages
    come with all parts of it but one, and so do parts of a collective, which share its name, but the first.
    """
    calls: Counter[str] = Counter()
    exchanged: set[str] = set()
    for k in ops:
        op = arrays.ops[arrays.op[k]]
        phase = arrays.phases[arrays.phase[k]]
        captured = launching == "cuda_graphs" and phase != "optimizer"
        by_lines = phase == "optimizer" or (launching in _BY_LAYERS and isinstance(op, Compute) and op.name in LOSS)
        where = "operators" if by_lines else "forward" if is_forward(arrays, k, op) else "backward"
        if isinstance(op, Collective):
            again = op.axis == "tp" and op.name in exchanged
            exchanged.add(op.name)
            calls["collectives"] += not (again or (captured and op.axis in _IN_LAYER))
            calls[where] -= op.axis == "tp" and (again or op.kind == "all_to_all") and not captured
        elif isinstance(op, Compute) and not captured:
            compiled = launching == "compiled" and phase != "optimizer"
            passes = sum(kernel.count for kernel in op.kernels if kernel.kind == "memory" and compiled)
            calls["compiled"] += passes
            calls[where] += sum(kernel.count for kernel in op.kernels) - passes
        elif not isinstance(op, Compute):
            calls["operators"] += 1
    return calls


def entry_calls(launching: Launching) -> Counter[str]:
    """What entering a pass of a layer takes by itself."""
    if launching == "compiled":
        return Counter(entries=1)
    return Counter(graphs=1, forward=1) if launching == "cuda_graphs" else Counter()
