"""The host thread that issues a program's kernels: its calls as ops on a stream of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.issue_groups import IssueGroups, issue_groups
from clustersim.workload.layers.dispatch import TOKEN_COUNTS
from clustersim.workload.op import Collective, Compute, HostLaunch, Op
from clustersim.workload.program import Program

__all__ = ["LAUNCHES", "Launching", "issue"]

Launching = Literal["none", "eager", "modules", "compiled", "cuda_graphs"]
LAUNCHES = get_args(Launching)

_Table = NDArray[np.int64]
"""Calls, a row for each op, place or group."""

_IN_LAYER = ("tp", "cp", "ep")
_CALLS = ("operators", "half_modules", "compiled", "entries", "graphs", "waits")
"""Kinds of calls, in the order of the columns of all tables of them."""


def issue(
    program: Program,
    launching: Launching,
    *,
    fences: Mapping[int, Sequence[int]] | None = None,
    waits_for_messages: bool = False,
    waits_for_kernels: bool = False,
) -> None:
    """Append the host's ops to a whole program, in place.

    The host issues what the GPU runs in the order of the program, and runs ahead. Its calls for one pass of a layer are
    one op, up to and with the first kernel of the next: what stands first in a pass waits for it, and the rest
    follows, so that no pass starts before it is issued and the first kernel of the next waits for all calls of this
    one. What a host that is never late costs is the first kernel's call. Gradients that are reduced from hooks are
    issued where the pass that makes them is. The host itself waits at a *fence*: where it reads what the device has
    computed.

    =============== ===================================================================================================
    ``eager``       a kernel is an operator
    ``modules``     a product forward is a layer's call, two backward are one, since gradients of input and weights are
                    made in one function; other kernels are operators (Megatron-LM, Transformer Engine)
    ``compiled``    a product is an operator, other kernels are those of a compiled graph, which each pass of a layer
                    enters once
    ``cuda_graphs`` each pass of a layer is one graph with its collectives, replayed by one layer's call
    =============== ===================================================================================================

    A call of a collective counts as one of a layer. The optimizer's kernels are operators. Left out: operators that
    launch nothing (views, transposes that only change strides), hooks, the allocator, and the bound on calls that wait
    for the device, about a thousand, which a host that runs ahead comes up against.

    Parameters
    ----------
    program : Program
        of one step or several; its last op on ``host`` precedes the first of its next round
    launching : str
        of :data:`LAUNCHES`; ``none``: nothing is added
    fences : Mapping[int, Sequence[int]], optional
        op -> ops whose end the host waits for before it issues it
    waits_for_messages : bool
        the host waits for the messages between stages that it has posted, as Megatron-LM does unless told to overlap
        them: ``batch_p2p_sync`` synchronises the device after each batch of sends and receives
    waits_for_kernels : bool
        the host waits for all that it has issued before it issues more, and once for each kernel: the calls of a pass,
        which then run beside nothing, stand before its kernels in one op. Messages that stand next to each other are
        still posted together, as a pair of stages must, and gradients are reduced where the program has it

    References
    ----------
    Megatron-LM, ``megatron/core/model_parallel_config.py`` (``batch_p2p_sync``), ``core/optimizer/clip_grads.py`` (the
    norm is read with ``item()``), ``core/transformer/moe/token_dispatcher.py`` (counts of tokens are read before they
    are sent).
    """
    arrays = program.arrays()
    if launching == "none" or not len(arrays):
        return
    if waits_for_kernels:
        groups = issue_groups(arrays, {}, apart=True, hooks=False)
        calls, rest, waits = _in_turn(arrays, groups, launching)
    else:
        stops = _stops(arrays, fences or {}, counts=launching != "cuda_graphs")
        groups = issue_groups(arrays, stops, apart=waits_for_messages)
        calls, rest, waits = _ahead(arrays, groups, launching)
    entered = groups.opens & (np.array(arrays.phases)[arrays.phase[groups.lead]] != "optimizer")
    calls += entered[:, None] * _row(_entry(launching))
    rows = np.concatenate([arrays.phase[groups.lead][:, None], calls], axis=1)
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    ops = [_op(f"launch {arrays.phases[phase]}", launching, row) for phase, *row in kinds.tolist()]
    host = program.add_like(groups.lead, ops, which.reshape(-1), stream="host")
    program.depend_all(waits[:, 0], host[waits[:, 1]])
    heads = groups.heads(arrays)
    program.depend_all(host[heads[:, 1]], heads[:, 0])
    if rest.any():
        program.add(_op("launch the rest", launching, rest.tolist()), stream="host", step=arrays.period - 1)


def _ahead(arrays: Arrays, groups: IssueGroups, launching: Launching) -> tuple[_Table, _Table, _Table]:
    """Calls of each group, what is left for the end, and what the host waits for, where it runs ahead."""
    is_kernel = np.array([isinstance(op, Compute) for op in arrays.ops], dtype=bool)[arrays.op[groups.order]]
    until = _until(_by_op(arrays, lambda op, phase: _calls(op, phase, launching))[groups.order])
    at = groups.first(is_kernel) + 1
    calls = np.diff(until[np.append(0, at)], axis=0)
    calls[np.unique(groups.waits[:, 1])] += _row({"waits": 1})
    return calls, until[-1] - until[at[-1]], groups.waits


def _in_turn(arrays: Arrays, groups: IssueGroups, launching: Launching) -> tuple[_Table, _Table, _Table]:
    """The same where each group's calls stand before it and wait for all of the group before."""
    until = _until(_by_op(arrays, lambda op, phase: _calls(op, phase, launching) | {"waits": _launches(op)}))
    calls = np.diff(until[groups.begin], axis=0)
    last = groups.begin[-2]
    waits = np.stack([groups.order[:last], 1 + groups.group[:last]], axis=1)
    return calls, 0 * calls[0], waits


def _until(calls: _Table) -> _Table:
    """Calls of all places before each, and of all."""
    return np.concatenate([np.zeros((1, len(_CALLS)), dtype=np.int64), np.cumsum(calls, axis=0)])


def _by_op(arrays: Arrays, calls: Callable[[Op, str], Mapping[str, int]]) -> _Table:
    """A row of calls for each op; those of one kind and phase are looked at once."""
    code, of = np.unique(arrays.op.astype(np.int64) * len(arrays.phases) + arrays.phase, return_inverse=True)
    table = [_row(calls(arrays.ops[k // len(arrays.phases)], arrays.phases[k % len(arrays.phases)])) for k in code]
    rows: _Table = np.stack(table)[of.reshape(-1)]
    return rows


def _row(calls: Mapping[str, int]) -> _Table:
    return np.array([calls.get(name, 0) for name in _CALLS], dtype=np.int64)


def _launches(op: Op) -> int:
    """Kernels of a block; a collective or message is one."""
    return sum(kernel.count for kernel in op.kernels) if isinstance(op, Compute) else 1


def _stops(arrays: Arrays, fences: Mapping[int, Sequence[int]], *, counts: bool) -> dict[int, Sequence[int]]:
    """Ops before which the host waits, with what for; ``counts`` of the tokens for experts are read by it."""
    stops = dict(fences)
    told = np.array([isinstance(op, Collective) and op.name == TOKEN_COUNTS for op in arrays.ops], dtype=bool)
    sent = np.array([isinstance(op, Collective) and op.kind == "all_to_all" for op in arrays.ops], dtype=bool)
    read: dict[tuple[int, int], int] = {}
    for k in np.flatnonzero((told | sent)[arrays.op]).tolist() if counts and told.any() else ():
        at = int(arrays.micro_batch[k]), int(arrays.layer[k])
        if told[arrays.op[k]]:
            read[at] = k
        elif at in read:
            stops[k] = (*stops.get(k, ()), read.pop(at))
    return stops


def _op(name: str, launching: Launching, calls: Sequence[int]) -> HostLaunch:
    of: dict[str, Any] = dict(zip(_CALLS, calls, strict=True))
    return HostLaunch(name=name, kind=launching, **of)


def _calls(op: Op, phase: str, launching: Launching) -> dict[str, int]:
    """Calls that issue an op."""
    captured = launching == "cuda_graphs" and phase != "optimizer"
    if isinstance(op, Collective):
        return {} if captured and op.axis in _IN_LAYER else {"half_modules": 2}
    if not isinstance(op, Compute):
        return {"operators": 1}
    if captured:
        return {}
    products = sum(kernel.count for kernel in op.kernels if kernel.kind != "memory")
    passes = sum(kernel.count for kernel in op.kernels if kernel.kind == "memory")
    if phase == "optimizer" or launching == "eager":
        return {"operators": products + passes}
    if launching == "modules":
        forward = op.recomputed or not phase.startswith("backward")
        return {"half_modules": products * (2 if forward else 1), "operators": passes}
    return {"operators": products, "compiled": passes}


def _entry(launching: Launching) -> dict[str, int]:
    """What entering a pass of a layer takes by itself."""
    if launching == "compiled":
        return {"entries": 1}
    return {"graphs": 1, "half_modules": 2} if launching == "cuda_graphs" else {}
