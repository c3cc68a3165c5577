"""What the host calls to issue ops, counted by kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.host_waits import is_forward
from clustersim.workload.layers.loss import LOSS
from clustersim.workload.op import Collective, Compute, HostLaunch, Op

__all__ = ["LAUNCHES", "WAITS", "Calls", "Launching", "calls_of", "entry_calls", "host_launch", "num_launches"]

Launching = Literal["none", "eager", "layers", "modules", "compiled", "cuda_graphs"]
LAUNCHES = get_args(Launching)

Calls: TypeAlias = NDArray[np.int64]
"""Numbers of calls: a row for each op, place or pass, a column for each kind."""

_IN_LAYER = ("tp", "cp", "ep")
_BY_LAYERS = ("layers", "modules")
_KINDS = ("forward", "backward", "operators", "collectives", "compiled", "entries", "graphs", "waits")
"""Kinds of calls as :class:`HostLaunch` names them, in the order of the columns."""

WAITS = _KINDS.index("waits")


def num_launches(arrays: Arrays) -> NDArray[np.int64]:
    """Kernels of each op, shape (n,); a collective or message is one."""
    of = [sum(kernel.count for kernel in op.kernels) if isinstance(op, Compute) else 1 for op in arrays.ops]
    return np.array(of, dtype=np.int64)[arrays.op]


def host_launch(name: str, launching: Launching, calls: Sequence[int]) -> HostLaunch:
    """The op that stands for a row of calls."""
    of: dict[str, Any] = dict(zip(_KINDS, calls, strict=True))
    return HostLaunch(name=name, kind=launching, **of)


def calls_of(arrays: Arrays, order: NDArray[np.int64], part: NDArray[np.int64], launching: Launching) -> Calls:
    """Calls that issue each of some ops.

    The optimizer, and cross-entropy beside layers in Python, are operators: no layer's code stands around their
    kernels. A product that computes part by part beside its exchanges is one call with all of them: a ring's messages
    come with all parts of it but one, and so do parts of a collective, which share its name, but the first. So a
    message takes one call away from those of the kernels beside it.

    Parameters
    ----------
    arrays : Arrays
    order : NDArray[int64], shape (m,)
        the ops
    part : NDArray[int64], shape (m,)
        numbers the parts of passes in which parts of one product stand together

    Returns
    -------
    Calls, shape (m, kinds)
    """
    again = _exchanged_again(arrays, order, part)
    phases = len(arrays.phases)
    code, which = np.unique((arrays.op[order] * phases + arrays.phase[order]) * 2 + again, return_inverse=True)
    rows = [
        _calls(arrays.ops[k // 2 // phases], arrays.phases[k // 2 % phases], launching, again=bool(k % 2))
        for k in code.tolist()
    ]
    table: Calls = np.stack(rows)[which.reshape(-1)]
    return table


def _exchanged_again(arrays: Arrays, order: NDArray[np.int64], part: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Collectives on tp whose name another one before them in their part has."""
    number: dict[str, int] = {}
    names = [number.setdefault(op.name, len(number)) if isinstance(op, Collective) else -1 for op in arrays.ops]
    on_tp = np.array([isinstance(op, Collective) and op.axis == "tp" for op in arrays.ops], dtype=bool)
    name = np.array(names, dtype=np.int64)[arrays.op[order]]
    again = on_tp[arrays.op[order]]
    places = np.flatnonzero(name >= 0)
    first = np.unique(part[places] * len(number) + name[places], return_index=True)[1]
    again[places[first]] = False
    return again


def _calls(op: Op, phase: str, launching: Launching, *, again: bool) -> Calls:
    """Calls that issue an op; ``again``: a further part of a collective."""
    updates = phase == "optimizer"
    captured = launching == "cuda_graphs" and not updates
    by_lines = updates or (launching in _BY_LAYERS and isinstance(op, Compute) and op.name in LOSS)
    where = "operators" if by_lines else "forward" if is_forward(op, phase) else "backward"
    if isinstance(op, Collective):
        with_product = op.axis == "tp" and (again or op.kind == "all_to_all") and not captured
        return _row({"collectives": not (again or (captured and op.axis in _IN_LAYER)), where: -int(with_product)})
    if not isinstance(op, Compute):
        return _row({"operators": 1})
    if captured:
        return _row({})
    compiled = launching == "compiled" and not updates
    passes = sum(kernel.count for kernel in op.kernels if kernel.kind == "memory" and compiled)
    return _row({"compiled": passes, where: sum(kernel.count for kernel in op.kernels) - passes})


def entry_calls(launching: Launching) -> Calls:
    """What entering a pass of a layer takes by itself."""
    if launching == "compiled":
        return _row({"entries": 1})
    return _row({"graphs": 1, "forward": 1} if launching == "cuda_graphs" else {})


def _row(calls: dict[str, int]) -> Calls:
    return np.array([calls.get(kind, 0) for kind in _KINDS], dtype=np.int64)
