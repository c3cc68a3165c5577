"""What the host calls to issue ops, counted by kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.kernel import Kernel
from clustersim.workload.arrays import Arrays
from clustersim.workload.captured import is_captured, module_of
from clustersim.workload.host_waits import is_forward
from clustersim.workload.layers.loss import LOSS
from clustersim.workload.op import Collective, Compute, HostLaunch, Op

__all__ = [
    "COLLECTIONS",
    "LAUNCHES",
    "WAITS",
    "Calls",
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

Calls: TypeAlias = NDArray[np.int64]
"""Numbers of calls: a row for each op, place or pass, a column for each kind."""

_IN_LAYER = ("tp", "cp", "ep")
_BY_LAYERS = ("layers", "modules")
_KINDS = (
    *("forward", "backward", "experts", "experts_backward", "hooks", "hooks_backward"),
    *("operators", "collectives", "compiled", "entries", "graphs", "waits", "collections"),
)
"""Kinds of calls as :class:`HostLaunch` names them, in the order of the columns."""

WAITS = _KINDS.index("waits")
COLLECTIONS = _KINDS.index("collections")


def num_launches(arrays: Arrays) -> NDArray[np.int64]:
    """Kernels of each op, shape (n,); a collective or message is one, what the host does by itself none."""
    of = [
        sum(map(_issued, op.kernels)) + _looped(op.kernels)
        if isinstance(op, Compute)
        else int(not isinstance(op, HostLaunch))
        for op in arrays.ops
    ]
    return np.array(of, dtype=np.int64)[arrays.op]


def host_launch(name: str, launching: Launching, calls: Sequence[int]) -> HostLaunch:
    """The op that stands for a row of calls."""
    of: dict[str, Any] = dict(zip(_KINDS, calls, strict=True))
    return HostLaunch(name=name, kind=launching, **of)


def calls_of(
    arrays: Arrays,
    order: NDArray[np.int64],
    part: NDArray[np.int64],
    launching: Launching,
    captured: NDArray[np.bool_],
    *,
    hooked: bool,
) -> Calls:
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
    launching : str
    captured : NDArray[bool], shape (n,)
        ops that graphs hold, see :func:`captured_ops`, which are not called by themselves
    hooked : bool
        Python is called around each module

    Returns
    -------
    Calls, shape (m, kinds)
    """
    again = _exchanged_again(arrays, order, part)
    phases = len(arrays.phases)
    kind = arrays.op[order].astype(np.int64) * phases + arrays.phase[order]
    code, which = np.unique(kind * 4 + captured[order] * 2 + again, return_inverse=True)
    rows = [
        _calls(
            arrays.ops[k // 4 // phases],
            arrays.phases[k // 4 % phases],
            launching,
            captured=bool(k & 2),
            again=bool(k & 1),
            hooked=hooked,
        )
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


def _calls(op: Op, phase: str, launching: Launching, *, captured: bool, again: bool, hooked: bool) -> Calls:
    """Calls that issue an op; ``again``: a further part of a collective."""
    updates = phase == "optimizer"
    by_lines = updates or (launching in _BY_LAYERS and isinstance(op, Compute) and op.name in LOSS)
    where = "operators" if by_lines else "forward" if is_forward(op, phase) else "backward"
    if isinstance(op, Collective):
        with_product = op.axis == "tp" and (again or op.kind == "all_to_all") and not captured
        return _row({"collectives": not (again or (captured and op.axis in _IN_LAYER)), where: -int(with_product)})
    if isinstance(op, HostLaunch):
        return _row({})
    if not isinstance(op, Compute):
        return _row({"operators": 1})
    if captured:
        return _row({})
    compiled = launching == "compiled" and not updates
    passes = sum(_issued(kernel) for kernel in op.kernels if kernel.kind == "memory" and compiled)
    calls = {"compiled": passes, where: sum(map(_issued, op.kernels)) - passes}
    backward = "_backward" if where == "backward" else ""
    calls[f"experts{backward}"] = _looped(op.kernels)
    calls[f"hooks{backward}"] = _with_weights(op) if hooked and not updates else 0
    return _row(calls)


def captured_ops(arrays: Arrays, launching: Launching, cuda_graphs: Sequence[str]) -> NDArray[np.bool_]:
    """Ops that graphs hold, shape (n,): all but the update's, or those of some modules of layers."""
    updates = np.array([phase == "optimizer" for phase in arrays.phases], dtype=bool)[arrays.phase]
    if launching == "cuda_graphs":
        return ~updates
    there = {module_of(op) for op in arrays.ops}
    modules = [name for name in cuda_graphs if name in there]
    of = np.array([is_captured(op, modules) for op in arrays.ops], dtype=bool)[arrays.op]
    found: NDArray[np.bool_] = of & ~updates & (arrays.layer >= 0)
    return found


def _issued(kernel: Kernel) -> int:
    """Launches of a kernel that are calls of their own."""
    return 1 if kernel.looped else kernel.count


def _with_weights(op: Compute) -> int:
    """Kernels with weights of their own: products, and norms and lookups, whose operators are one module."""
    if op.kind in ("norm", "embedding"):
        return 1
    products = (kernel for kernel in op.kernels if kernel.kind == "gemm" and kernel.batch == 1)
    return sum(kernel.count + kernel.looped for kernel in products)


def _looped(kernels: Iterable[Kernel]) -> int:
    """Launches of some kernels that loops over experts make."""
    return sum(kernel.looped for kernel in kernels)


def entry_calls(launching: Launching) -> Calls:
    """What entering a pass of a layer takes by itself."""
    if launching == "compiled":
        return _row({"entries": 1})
    return graph_calls() if launching == "cuda_graphs" else _row({})


def graph_calls() -> Calls:
    """What replaying a graph takes: a module's call."""
    return _row({"graphs": 1, "forward": 1})


def _row(calls: dict[str, int]) -> Calls:
    return np.array([calls.get(kind, 0) for kind in _KINDS], dtype=np.int64)
