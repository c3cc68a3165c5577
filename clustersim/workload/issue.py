"""The host thread that issues a program's kernels: its calls as ops on a stream of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays
from clustersim.workload.host_calls import (
    Launching,
    calls_of,
    captured_ops,
    entry_calls,
    graph_calls,
    host_launch,
    num_launches,
)
from clustersim.workload.host_waits import host_waits
from clustersim.workload.op import Collective, Compute
from clustersim.workload.program import Program

__all__ = ["issue"]

_POINT_TO_POINT = ("send", "recv")


def issue(
    program: Program,
    launching: Launching,
    *,
    cuda_graphs: Sequence[str] = (),
    fences: Mapping[int, Sequence[int]] | None = None,
    waits_in_layers: bool = False,
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
    ``layers``      a kernel is one of a framework's layers in Python (Megatron-LM)
    ``modules``     the same of layers that choose formats and kernels by themselves (Transformer Engine)
    ``compiled``    a product is an operator, other kernels are those of a compiled graph, which each pass of a layer
                    enters once
    ``cuda_graphs`` each pass of a layer is one graph with its collectives, replayed by one layer's call
    =============== ===================================================================================================

    Collectives and messages are calls of their own. The optimizer's kernels are operators. What a layer does beside
    launching kernels (views, allocations, autograd's own work) is in the time of a kernel. Left out: hooks of sharded
    weights, and the bound on calls that wait for the device, about a thousand, which a host that runs ahead comes up
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

    References
    ----------
    Megatron-LM, ``megatron/core/model_parallel_config.py`` (``batch_p2p_sync``), ``core/optimizer/clip_grads.py`` (the
    norm is read with ``item()``), ``core/transformer/moe/token_dispatcher.py`` (counts of tokens are read before they
    are sent). microsoft/Megatron-DeepSpeed, ``megatron/model/transformer.py``, ``ParallelTransformerLayer.forward``;
    pytorch/pytorch issues 120996 and 190217 (tensors of a number synchronise).
    """
    if launching == "none":
        return
    arrays = program.arrays()
    captured = captured_ops(arrays, launching, cuda_graphs)
    stops = host_waits(arrays, fences or {}, counts=launching != "cuda_graphs", layers=waits_in_layers)
    if waits_for_kernels:
        _issue_in_turn(program, arrays, launching, captured, _groups(arrays, {}, apart=True, hooks=False))
        return
    before: _Group | None = None
    calls: Counter[str] = Counter()
    for group in _groups(arrays, stops, apart=waits_for_messages):
        first = next((k for k in group.ops if isinstance(arrays.ops[arrays.op[k]], Compute)), group.ops[-1])
        at = group.ops.index(first) + 1
        if group.waits and calls and before is not None:  # what the host waits for, it has issued
            _add(program, before, launching, calls)
            calls = Counter()
        calls += calls_of(arrays, group.ops[:at], launching, captured) + Counter(waits=len(group.waits) > 0)
        calls += _entered(group, launching, captured)
        issued = _add(program, group, launching, calls, after=group.waits)
        for k in group.heads(arrays):
            program.depend(k, after=[issued])
        before, calls = group, calls_of(arrays, group.ops[at:], launching, captured)
    if before is not None and calls:
        program.add(host_launch("launch the rest", launching, calls), stream="host", step=arrays.period - 1)


def _entered(group: _Group, launching: Launching, captured: NDArray[np.bool_]) -> Counter[str]:
    """What the host calls as it enters a pass of a layer."""
    if not group.opens or group.phase == "optimizer":
        return Counter()
    replays = launching != "cuda_graphs" and bool(captured[group.ops].any())
    return entry_calls(launching) + (graph_calls() if replays else Counter())


def _issue_in_turn(
    program: Program, arrays: Arrays, launching: Launching, captured: NDArray[np.bool_], groups: Sequence[_Group]
) -> None:
    """Each group's calls when all of the group before has run."""
    before: list[int] = []
    for group in groups:
        calls = calls_of(arrays, group.ops, launching, captured) + Counter(waits=num_launches(arrays, group.ops))
        calls += _entered(group, launching, captured)
        host = _add(program, group, launching, calls, after=before)
        for k in group.heads(arrays):
            program.depend(k, after=[host])
        before = group.ops


def _add(
    program: Program, group: _Group, launching: Launching, calls: Counter[str], *, after: Sequence[int] = ()
) -> int:
    return program.add(
        host_launch(f"launch {group.phase}", launching, calls),
        stream="host",
        after=after,
        phase=group.phase,
        micro_batch=group.micro_batch,
        layer=group.layer,
        stage=group.stage,
        step=group.step,
    )


@dataclass(slots=True)
class _Group:
    """Ops that one op of the host stands for, up to its first kernel."""

    phase: str
    micro_batch: int
    layer: int
    stage: int
    step: int
    waits: list[int]
    opens: bool
    ops: list[int] = field(default_factory=list)

    def heads(self, arrays: Arrays) -> Iterable[int]:
        """The first op on each stream."""
        found: dict[int, int] = {}
        for k in self.ops:
            found.setdefault(int(arrays.stream[k]), k)
        return found.values()


def _groups(arrays: Arrays, stops: Mapping[int, Sequence[int]], *, apart: bool, hooks: bool = True) -> list[_Group]:
    """Passes of a layer with the messages before them, in the order of issue; messages by themselves where ``apart``.

    A pass goes on behind a fence as another group. Without ``hooks`` gradients are reduced where the program has it.
    """
    groups: list[_Group] = []
    seen: set[tuple[object, ...]] = set()
    key: tuple[object, ...] | None = None
    posted: list[int] = []
    for k in _order(arrays) if hooks else range(len(arrays)):
        op = arrays.ops[arrays.op[k]]
        message = isinstance(op, Collective) and op.kind in _POINT_TO_POINT
        mine = (arrays.phase[k], arrays.micro_batch[k], arrays.layer[k], arrays.stage[k], arrays.step[k])
        waits = list(stops.get(k, ()))
        if message:
            if key != ("messages",):
                groups.append(_new(arrays, k, waits, opens=False))
                key = ("messages",)
        elif not (hooks and _is_hooked(arrays, k)) and (mine != key or waits or not groups):
            opens = not _is_hooked(arrays, k) and (mine not in seen or arrays.layer[k] < 0)
            group = _new(arrays, k, waits + (posted if apart else []), opens=opens)
            if key == ("messages",) and not group.waits:
                group.waits, group.ops = groups[-1].waits, groups[-1].ops
                groups[-1] = group
            else:
                groups.append(group)
            seen.add(mine)
            if group.phase == "optimizer":  # of several steps in one program each enters its passes again
                seen.clear()
            key, posted = mine, []
        groups[-1].ops.append(k)
        if message:
            posted.append(k)
    return groups


def _new(arrays: Arrays, k: int, waits: list[int], *, opens: bool) -> _Group:
    return _Group(
        phase=arrays.phases[arrays.phase[k]],
        micro_batch=int(arrays.micro_batch[k]),
        layer=int(arrays.layer[k]),
        stage=int(arrays.stage[k]),
        step=int(arrays.step[k]),
        waits=waits,
        opens=opens,
    )


def _order(arrays: Arrays) -> list[int]:
    """Ops in the order of their issue: that of the program, but reductions of gradients where they are due."""
    place = [(k, 0) for k in range(len(arrays))]
    hooked = {k for k in np.flatnonzero(arrays.micro_batch < 0).tolist() if _is_hooked(arrays, k)}
    for b, a in arrays.edges[np.isin(arrays.edges[:, 1], list(hooked))].tolist():
        place[a] = max(place[a] if place[a][1] else (-1, a), (place[b][0], a))
    return sorted(range(len(arrays)), key=place.__getitem__) if hooked else list(range(len(arrays)))


def _is_hooked(arrays: Arrays, k: int) -> bool:
    """Whether it reduces gradients when they are whole: the pass that makes them issues it, whatever stands between."""
    return (
        int(arrays.micro_batch[k]) < 0
        and arrays.phases[arrays.phase[k]] == "backward"
        and arrays.streams[arrays.stream[k]] != "compute"
    )
