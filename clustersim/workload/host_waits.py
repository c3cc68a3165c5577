"""Where the host that issues a program's kernels waits for the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustersim.workload.arrays import Arrays
from clustersim.workload.layers.dispatch import TOKEN_COUNTS
from clustersim.workload.op import Collective, Compute, Op

__all__ = ["host_waits", "is_forward"]


def host_waits(
    arrays: Arrays, fences: Mapping[int, Sequence[int]], *, counts: bool, layers: bool
) -> dict[int, Sequence[int]]:
    """Ops before which the host waits, with what for.

    Parameters
    ----------
    arrays : Arrays
        of the whole program
    fences : Mapping[int, Sequence[int]]
        those that are known already
    counts : bool
        counts of the tokens for experts are read by the host before tokens are sent
    layers : bool
        it waits before the MLP of each layer, forward, for the kernels before it
    """
    stops = dict(fences)
    if layers:
        stops |= _before_mlps(arrays)
    read: dict[tuple[int, int], int] = {}
    for k in range(len(arrays)) if counts else ():
        op = arrays.ops[arrays.op[k]]
        at = int(arrays.micro_batch[k]), int(arrays.layer[k])
        if isinstance(op, Collective) and op.name == TOKEN_COUNTS:
            read[at] = k
        elif isinstance(op, Collective) and op.kind == "all_to_all" and at in read:
            stops[k] = (*stops.get(k, ()), read.pop(at))
    return stops


def _before_mlps(arrays: Arrays) -> dict[int, Sequence[int]]:
    """The first kernels of each MLP forward -> those just before them."""
    stops: dict[int, Sequence[int]] = {}
    before: tuple[int, Compute] | None = None
    for k in range(len(arrays)):
        op = arrays.ops[arrays.op[k]]
        if not isinstance(op, Compute):
            continue
        if op.kind == "mlp" and is_forward(arrays, k, op) and before is not None and before[1].kind != "mlp":
            stops[k] = (before[0],)
        before = k, op
    return stops


def is_forward(arrays: Arrays, k: int, op: Op) -> bool:
    """Whether an op is of a forward pass, for the first time or again."""
    again = isinstance(op, Compute) and op.recomputed
    return again or not arrays.phases[arrays.phase[k]].startswith("backward")
