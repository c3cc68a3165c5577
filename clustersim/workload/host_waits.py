"""Where the host that issues a program's kernels waits for the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.layers.dispatch import ROUTING_MAPS, TOKEN_COUNTS
from clustersim.workload.layers.expert_operators import CLAMPED
from clustersim.workload.op import Collective, Compute, Op

__all__ = ["host_waits", "is_forward"]


_TOLD = (TOKEN_COUNTS, ROUTING_MAPS)


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
        counts of the tokens for experts are read by the host before tokens are sent, and behind clamps in front of the
        experts' activation a tensor of a number is made
    layers : bool
        it waits before the MLP of each layer, forward, for the kernels before it
    """
    stops = dict(fences)
    if layers:
        stops |= _before_mlps(arrays)
    if counts:
        stops |= _behind_clamps(arrays)
    told = _ops(arrays, [isinstance(op, Collective) and op.name in _TOLD for op in arrays.ops])
    sent = _ops(arrays, [isinstance(op, Collective) and op.kind == "all_to_all" for op in arrays.ops])
    read: dict[tuple[int, int], int] = {}
    for k in np.flatnonzero(told | sent).tolist() if counts and told.any() else ():
        at = int(arrays.micro_batch[k]), int(arrays.layer[k])
        if told[k]:
            read[at] = k
        elif at in read:
            stops[k] = (*stops.get(k, ()), read.pop(at))
    return stops


def _before_mlps(arrays: Arrays) -> dict[int, Sequence[int]]:
    """The first kernels of each MLP forward -> those just before them."""
    kernels = np.flatnonzero(_ops(arrays, [isinstance(op, Compute) for op in arrays.ops]))
    mlp = _ops(arrays, [isinstance(op, Compute) and op.kind == "mlp" for op in arrays.ops])[kernels]
    forward = np.array([[is_forward(op, phase) for phase in arrays.phases] for op in arrays.ops], dtype=bool)
    begins = np.flatnonzero(mlp[1:] & ~mlp[:-1] & forward[arrays.op[kernels[1:]], arrays.phase[kernels[1:]]])
    return {int(kernels[n + 1]): (int(kernels[n]),) for n in begins}


def _behind_clamps(arrays: Arrays) -> dict[int, Sequence[int]]:
    """What experts compute behind clamps of their own -> the clamps, for the first time or again."""
    kernels = np.flatnonzero(_ops(arrays, [isinstance(op, Compute) for op in arrays.ops]))
    behind = _ops(arrays, [isinstance(op, Compute) and op.name.startswith(CLAMPED) for op in arrays.ops])[kernels]
    return {int(kernels[n]): (int(kernels[n - 1]),) for n in np.flatnonzero(behind)}


def _ops(arrays: Arrays, marked: Sequence[bool]) -> NDArray[np.bool_]:
    """What is marked of the different ops, of all ops of the program."""
    return np.array(marked, dtype=bool)[arrays.op]


def is_forward(op: Op, phase: str) -> bool:
    """Whether an op of a phase is of a forward pass, for the first time or again."""
    return (isinstance(op, Compute) and op.recomputed) or not phase.startswith("backward")
