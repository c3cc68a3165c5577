"""The host thread that issues a program's kernels: its calls as ops on a stream of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.host_calls import (
    COLLECTIONS,
    WAITS,
    Calls,
    Launching,
    calls_of,
    captured_ops,
    entry_calls,
    graph_calls,
    host_launch,
    num_launches,
)
from clustersim.workload.host_waits import host_waits
from clustersim.workload.issue_groups import IssueGroups, issue_groups
from clustersim.workload.op import Compute
from clustersim.workload.program import Program

__all__ = ["issue"]

_PASSES = {"forward": 1, "backward": 2, "optimizer": 3}
"""Phases of a program whose names DeepSpeed's engine has methods for."""


def issue(
    program: Program,
    launching: Launching,
    *,
    cuda_graphs: Sequence[str] = (),
    fences: Mapping[int, Sequence[int]] | None = None,
    hooked: bool = False,
    waits_in_layers: bool = False,
    waits_for_messages: bool = False,
    waits_for_kernels: bool = False,
    collects: bool = False,
    collects_in_steps: bool = True,
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
    ``layers``      a kernel is one of a framework's layers in Python (Megatron-LM)
    ``modules``     the same of layers that choose formats and kernels by themselves (Transformer Engine)
    ``compiled``    a product is an operator, other kernels are those of a compiled graph, which each pass of a layer
                    enters once
    ``cuda_graphs`` each pass of a layer is one graph with its collectives, replayed by one layer's call
    =============== ===================================================================================================

    Collectives and messages are calls of their own. The optimizer's kernels are operators. What a layer does beside
    launching kernels (views, allocations, autograd's own work) is in the time of a kernel. Left out: hooks of FSDP's
    units, and the bound on calls that wait for the device, about a thousand, which a host that runs ahead comes up
    against.

    Parameters
    ----------
    program : Program
        of one step or several; its last op on ``host`` precedes the first of its next round
    launching : str
        of :data:`clustersim.workload.host_calls.LAUNCHES`; ``none``: nothing is added
    cuda_graphs : Sequence[str], optional
        modules of :data:`clustersim.workload.captured.CAPTURED` that are graphs by themselves: what a pass has of them
        is replayed by one layer's call
    fences : Mapping[int, Sequence[int]], optional
        op -> ops whose end the host waits for before it issues it
    hooked : bool
        Python is called before and after each module, forward and backward, as DeepSpeed's ZeRO-3 does, which looks
        for the module's weights, has those of the next ones gathered and releases its own there
    waits_in_layers : bool
        the host waits for the device in each forward pass of a layer, before its MLP and again where it is computed
        again: Megatron-DeepSpeed makes two tensors of a number there (``torch.tensor(0.0, device=...)``), which are
        copies from pageable memory that end only when all before them has
    waits_for_messages : bool
        the host waits for the messages between stages that it has posted, as Megatron-LM does unless told to overlap
        them: ``batch_p2p_sync`` synchronises the device after each batch of sends and receives
    waits_for_kernels : bool
        the host waits for all that it has issued before it issues more, and once for each kernel: the calls of a pass,
        which then run beside nothing, stand before its kernels in one op. Messages that stand next to each other are
        still posted together, as a pair of stages must, and gradients are reduced where the program has it
    collects : bool
        the host collects Python's garbage before and after each forward pass, backward pass and step of a micro-batch,
        as DeepSpeed does to report memory (``memory_breakdown``): there rank 0 alone, here all, who would wait for it
    collects_in_steps : bool
        also around updates, which are the GPU's

    References
    ----------
    Megatron-LM, ``megatron/core/model_parallel_config.py`` (``batch_p2p_sync``), ``core/optimizer/clip_grads.py`` (the
    norm is read with ``item()``), ``core/transformer/moe/token_dispatcher.py`` (counts of tokens are read before they
    are sent). microsoft/Megatron-DeepSpeed, ``megatron/model/transformer.py``, ``ParallelTransformerLayer.forward``;
    pytorch/pytorch issues 120996 and 190217 (tensors of a number synchronise). DeepSpeed, ``runtime/engine.py``
    (``forward``, ``backward``, ``step``) and ``runtime/utils.py``, ``see_memory_usage``.
    """
    arrays = program.arrays()
    if launching == "none" or not len(arrays):
        return
    captured = captured_ops(arrays, launching, cuda_graphs)
    if waits_for_kernels:
        groups = issue_groups(arrays, {}, apart=True, hooks=False)
        host = _in_turn(arrays, groups, launching, captured, hooked=hooked)
    else:
        stops = host_waits(arrays, fences or {}, counts=launching != "cuda_graphs", layers=waits_in_layers)
        groups = issue_groups(arrays, stops, apart=waits_for_messages)
        host = _ahead(arrays, groups, launching, captured, hooked=hooked)
    host.calls[host.opening] += _entered(arrays, groups, launching, captured)
    if collects:
        host.calls[host.opening, COLLECTIONS] += _collections(arrays, groups, in_steps=collects_in_steps)
    lead = groups.lead[host.group]
    rows = np.concatenate([arrays.phase[lead][:, None], host.calls], axis=1)
    kinds, which = np.unique(rows, axis=0, return_inverse=True)
    ops = [host_launch(f"launch {arrays.phases[phase]}", launching, row) for phase, *row in kinds.tolist()]
    numbers = program.add_like(lead, ops, which.reshape(-1), stream="host")
    opening = numbers[host.opening]
    program.depend_all(host.waits[:, 0], opening[host.waits[:, 1]])
    heads = groups.heads(arrays)
    program.depend_all(opening[heads[:, 1]], heads[:, 0])
    if host.rest.any():
        program.add(
            host_launch("launch the rest", launching, host.rest.tolist()), stream="host", step=arrays.period - 1
        )


def _entered(arrays: Arrays, groups: IssueGroups, launching: Launching, captured: NDArray[np.bool_]) -> Calls:
    """What the host calls as it enters the pass of a layer that each group opens."""
    entered = groups.opens & (np.array(arrays.phases)[arrays.phase[groups.lead]] != "optimizer")
    calls: Calls = entered[:, None] * entry_calls(launching)
    if launching != "cuda_graphs":
        replayed = entered & np.logical_or.reduceat(captured[groups.order], groups.begin[:-1])
        calls = calls + replayed[:, None] * graph_calls()
    return calls


def _collections(arrays: Arrays, groups: IssueGroups, *, in_steps: bool) -> NDArray[np.int64]:
    """Collections of garbage before each group, shape (g,): one behind each pass, one ahead of the next.

    Between a pass and one of the other way, that is; a pipeline's passes of one way that follow each other have none in
    between here.

    A micro-batch whose backward pass is followed by another one's forward pass has a step of its own in between, which
    updates nothing. The first pass comes behind the last update.
    """
    phases = np.array([_PASSES.get(name, 0) for name in arrays.phases])[arrays.phase[groups.lead]]
    passes = np.flatnonzero(phases)
    found = np.zeros(len(groups), dtype=np.int64)
    before = np.roll(phases[passes], 1)
    enters = np.flatnonzero(before != phases[passes])
    forward, backward = phases[passes] == _PASSES["forward"], before == _PASSES["backward"]
    number = np.where(forward & backward, 4, 2)
    if not in_steps:
        number[(phases[passes] == _PASSES["optimizer"]) | (before == _PASSES["optimizer"])] = 0
    found[passes[enters]] = number[enters]
    return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _HostOps:
    """h ops of the host for g groups.

    Parameters
    ----------
    group : NDArray[int64], shape (h,)
        whose calls each makes
    opening : NDArray[int64], shape (g,)
        the one that each group's ops wait for
    calls : Calls, shape (h, kinds)
    waits : NDArray[int64], shape (w, 2)
        (op, group that is issued when it has ended)
    rest : Calls, shape (kinds,)
        calls behind all groups
    """

    group: NDArray[np.int64]
    opening: NDArray[np.int64]
    calls: Calls
    waits: NDArray[np.int64]
    rest: Calls


def _ahead(
    arrays: Arrays, groups: IssueGroups, launching: Launching, captured: NDArray[np.bool_], *, hooked: bool
) -> _HostOps:
    """A host that runs ahead makes calls behind a group's first kernel with those of the next group.

    Before it waits it makes them by themselves: what it waits for, it has issued.
    """
    is_kernel = np.array([isinstance(op, Compute) for op in arrays.ops], dtype=bool)[arrays.op[groups.order]]
    bounds = np.stack([groups.begin[:-1], groups.first(is_kernel) + 1], axis=1).reshape(-1)
    part = np.repeat(np.arange(len(bounds)), np.diff(bounds, append=len(groups.order)))
    by_part = _sums(
        calls_of(arrays, groups.order, part, launching, captured, hooked=hooked), np.append(bounds, len(groups.order))
    )
    calls, behind = by_part[::2], by_part[1::2]
    waiting = np.zeros(len(groups), dtype=bool)
    waiting[groups.waits[:, 1]] = True
    before = np.concatenate([np.zeros_like(behind[:1]), behind[:-1]])
    apart = waiting & before.any(axis=1)
    opening = np.arange(len(groups)) + np.cumsum(apart)
    group = np.empty(len(groups) + np.count_nonzero(apart), dtype=np.int64)
    group[opening], group[opening[apart] - 1] = np.arange(len(groups)), np.flatnonzero(apart) - 1
    of = np.zeros((len(group), calls.shape[1]), dtype=np.int64)
    of[opening] = np.where(apart[:, None], calls, before + calls)
    of[opening[apart] - 1] = before[apart]
    of[opening, WAITS] += waiting
    return _HostOps(
        group=group, opening=opening, calls=np.maximum(of, 0), waits=groups.waits, rest=np.maximum(behind[-1], 0)
    )


def _in_turn(
    arrays: Arrays, groups: IssueGroups, launching: Launching, captured: NDArray[np.bool_], *, hooked: bool
) -> _HostOps:
    """A host that waits for all of the group before makes each group's calls before it."""
    by_op = calls_of(arrays, groups.order, groups.group, launching, captured, hooked=hooked)
    by_op[:, WAITS] += num_launches(arrays)[groups.order]
    calls = np.maximum(_sums(by_op, groups.begin), 0)
    last, every = groups.begin[-2], np.arange(len(groups))
    waits = np.stack([groups.order[:last], 1 + groups.group[:last]], axis=1)
    return _HostOps(group=every, opening=every, calls=calls, waits=waits, rest=np.zeros_like(calls[0]))


def _sums(calls: Calls, bounds: NDArray[np.int64]) -> Calls:
    """Calls from each bound up to the next."""
    until = np.concatenate([np.zeros_like(calls[:1]), np.cumsum(calls, axis=0)])
    return np.diff(until[bounds], axis=0)
