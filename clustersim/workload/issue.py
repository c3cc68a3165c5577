"""The host thread that issues a program's kernels: its calls as ops on a stream of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from clustersim.workload.arrays import Arrays
from clustersim.workload.layers.dispatch import TOKEN_COUNTS
from clustersim.workload.op import Collective, Compute, HostLaunch
from clustersim.workload.program import Program

__all__ = ["LAUNCHES", "Launching", "issue"]

Launching = Literal["none", "eager", "modules", "compiled", "cuda_graphs"]
LAUNCHES = get_args(Launching)

_POINT_TO_POINT = ("send", "recv")
_IN_LAYER = ("tp", "cp", "ep")


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
    if launching == "none":
        return
    arrays = program.arrays()
    stops = _stops(arrays, fences or {}, counts=launching != "cuda_graphs")
    if waits_for_kernels:
        _issue_in_turn(program, arrays, launching, _groups(arrays, {}, apart=True, hooks=False))
        return
    last: int | None = None
    calls: Counter[str] = Counter()
    for group in _groups(arrays, stops, apart=waits_for_messages):
        first = next((k for k in group.ops if isinstance(arrays.ops[arrays.op[k]], Compute)), group.ops[-1])
        at = group.ops.index(first) + 1
        calls += _calls(arrays, group.ops[:at], launching) + Counter(waits=len(group.waits) > 0)
        if group.opens and group.phase != "optimizer":
            calls += _entry(launching)
        last = program.add(
            _op(f"launch {group.phase}", launching, calls),
            stream="host",
            after=group.waits,
            phase=group.phase,
            micro_batch=group.micro_batch,
            layer=group.layer,
            stage=group.stage,
            step=group.step,
        )
        for k in group.heads(arrays):
            program.depend(k, after=[last])
        calls = _calls(arrays, group.ops[at:], launching)
    if last is not None and calls:
        program.add(_op("launch the rest", launching, calls), stream="host", step=arrays.period - 1)


def _issue_in_turn(program: Program, arrays: Arrays, launching: Launching, groups: Sequence[_Group]) -> None:
    """Each group's calls when all of the group before has run."""
    before: list[int] = []
    for group in groups:
        calls = _calls(arrays, group.ops, launching) + Counter(waits=_launches(arrays, group.ops))
        if group.opens and group.phase != "optimizer":
            calls += _entry(launching)
        host = program.add(
            _op(f"launch {group.phase}", launching, calls),
            stream="host",
            after=before,
            phase=group.phase,
            micro_batch=group.micro_batch,
            layer=group.layer,
            stage=group.stage,
            step=group.step,
        )
        for k in group.heads(arrays):
            program.depend(k, after=[host])
        before = group.ops


def _launches(arrays: Arrays, ops: Sequence[int]) -> int:
    """Kernels, collectives and messages among some ops."""
    of = (arrays.ops[arrays.op[k]] for k in ops)
    return sum(sum(kernel.count for kernel in op.kernels) if isinstance(op, Compute) else 1 for op in of)


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


def _stops(arrays: Arrays, fences: Mapping[int, Sequence[int]], *, counts: bool) -> dict[int, Sequence[int]]:
    """Ops before which the host waits, with what for; ``counts`` of the tokens for experts are read by it."""
    stops = dict(fences)
    read: dict[tuple[int, int], int] = {}
    for k in range(len(arrays)) if counts else ():
        op = arrays.ops[arrays.op[k]]
        at = int(arrays.micro_batch[k]), int(arrays.layer[k])
        if isinstance(op, Collective) and op.name == TOKEN_COUNTS:
            read[at] = k
        elif isinstance(op, Collective) and op.kind == "all_to_all" and at in read:
            stops[k] = (*stops.get(k, ()), read.pop(at))
    return stops


def _op(name: str, launching: Launching, calls: Counter[str]) -> HostLaunch:
    return HostLaunch(
        name=name,
        kind=launching,
        operators=calls["operators"],
        half_modules=calls["half_modules"],
        compiled=calls["compiled"],
        entries=calls["entries"],
        graphs=calls["graphs"],
        waits=calls["waits"],
    )


def _calls(arrays: Arrays, ops: Sequence[int], launching: Launching) -> Counter[str]:
    """Calls that issue some ops."""
    calls: Counter[str] = Counter()
    for k in ops:
        op = arrays.ops[arrays.op[k]]
        phase = arrays.phases[arrays.phase[k]]
        captured = launching == "cuda_graphs" and phase != "optimizer"
        if isinstance(op, Collective):
            calls["half_modules"] += 2 * (not (captured and op.axis in _IN_LAYER))
        elif isinstance(op, Compute) and not captured:
            products = sum(kernel.count for kernel in op.kernels if kernel.kind != "memory")
            passes = sum(kernel.count for kernel in op.kernels if kernel.kind == "memory")
            if phase == "optimizer" or launching == "eager":
                calls["operators"] += products + passes
            elif launching == "modules":
                forward = op.recomputed or not phase.startswith("backward")
                calls["half_modules"] += products * (2 if forward else 1)
                calls["operators"] += passes
            else:
                calls["operators"] += products
                calls["compiled"] += passes
        elif not isinstance(op, Compute):
            calls["operators"] += 1
    return calls


def _entry(launching: Launching) -> Counter[str]:
    """What entering a pass of a layer takes by itself."""
    if launching == "compiled":
        return Counter(entries=1)
    return Counter(graphs=1, half_modules=2) if launching == "cuda_graphs" else Counter()
