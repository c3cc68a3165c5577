"""What the collectives of many equal groups put on which resource, and the time that it takes there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.exposed import Laid, exposed_ns, paced
from clustersim.collective.phases import Phases
from clustersim.collective.traffic import Phase, Traffic
from clustersim.collective.up_and_down import Stretch, returning_ns
from clustersim.hardware.protocol import Demand
from clustersim.topology.in_network import InNetwork
from clustersim.topology.topology import Topology

__all__ = ["Loads", "loads_of"]

_Key = tuple[bytes, bytes, bytes]
_Edges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""(phases, group, row, load of each phase)"""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Loads:
    """Of n groups of m members and S signatures, which have P phases together.

    Parameters
    ----------
    demands : tuple[Demand, ...]
        one a signature: what it asks of the n groups before a protocol
    of_phases : tuple[Demand, ...]
        one a phase: its part of that; the first of a signature has the launch
    phases : Phases
        the numbers of the phases
    group, row, memory_row
        see :class:`clustersim.collective.cost.GroupCost`
    load, peak, memory
        see :class:`clustersim.collective.phases.PhaseCost`; ``peak`` is ``peak_load``, ``memory`` is ``memory_nbytes``
    """

    demands: tuple[Demand, ...]
    of_phases: tuple[Demand, ...]
    phases: Phases
    group: NDArray[np.int64]
    row: NDArray[np.int64]
    load: NDArray[np.int64]
    peak: NDArray[np.int64]
    memory: NDArray[np.int64]
    memory_row: NDArray[np.int64]


def loads_of(topology: Topology, devices: NDArray[np.int64], traffic: tuple[Traffic, ...]) -> Loads:
    """Loads and demands; see :func:`clustersim.collective.cost.group_cost` for the parameters."""
    n = len(devices)
    routes: dict[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    pace = [_pace(topology, devices, what, routes) for what in traffic]
    traffic = tuple(
        what if ends is None else replace(what, pipelined=True) for what, ends in zip(traffic, pace, strict=True)
    )
    phases = Phases.of(traffic)
    num = phases.num_phases
    capacity = topology.resources.capacity.astype(np.float64)
    hbm = topology.local.get("hbm")
    memory_row = hbm.rows[devices, 0] if hbm is not None else np.full(devices.shape, -1, dtype=np.int64)
    launch_ns = np.max(
        np.array([round(g.launch_latency * 1e9) for g in topology.gpus])[topology.gpu_of[devices]], axis=1
    )
    node = topology.node_of[devices[0]]  # equal groups sit alike
    # inside, between: bytes on each hop by signature, but for those of several phases
    crossed: tuple[dict[_Key, NDArray[np.int64]], ...] = ({}, {})
    by_phase: list[_Edges] = []
    steps = np.zeros((2, num), dtype=np.int64)
    steps_ns = np.zeros((n, num), dtype=np.int64)
    seconds = np.zeros((2, n, num))
    for s, what in enumerate(traffic):
        for c, phase in zip(phases.columns(s, what), what.phases, strict=True):
            parts = _by_reach(phase, node)
            rows, nbytes = [], []
            for away, part in parts:
                hops, route_ns = _route(topology, devices, part, routes)
                steps[away, c] += part.num_steps
                steps_ns[:, c] += part.num_steps * route_ns
                rows.append(hops)
                nbytes.append(np.repeat(part.nbytes, hops.shape[1] // max(1, len(part.nbytes))))
                if phases.is_one(s):
                    on = crossed[away].setdefault(_key(part), np.zeros((hops.shape[1], len(traffic)), dtype=np.int64))
                    on[:, s] += nbytes[-1]
            if not what.pipelined:
                group, row, load = _edges(np.concatenate(rows, axis=1), np.concatenate(nbytes)[:, None])
                seconds[parts[-1][0], :, c] = _max_by_group(group, load[:, 0] / capacity[row], n)
                if not phases.is_one(s):
                    by_phase.append((np.array([c]), group, row, load))
    memory = np.concatenate([phases.memory_of(s, what) for s, what in enumerate(traffic)], axis=1)
    ones, others = phases.ones_and_others()
    in_memory = np.zeros((devices.shape[1], len(traffic)), dtype=np.int64)
    in_memory[:, ones] = memory[:, phases.first[ones]]
    group, row, load = _edges(
        np.concatenate([*(routes[key][0] for reach in crossed for key in reach), memory_row], axis=1),
        np.concatenate([*crossed[0].values(), *crossed[1].values(), in_memory]),
    )
    if by_phase:
        by_phase.append((others, *_edges(memory_row, memory[:, others])))
        by_phase.append((phases.first[ones], group, row, load[:, ones]))
        group, row, load = _merged(by_phase, len(capacity), num)
    busiest = _busiest_of(load, capacity, group, row, n)
    whole = busiest if num == len(traffic) else _busiest_of(phases.total(load), capacity, group, row, n)
    overlapping = np.stack([_busiest(reach, routes, capacity, (n, len(traffic))) for reach in crossed])
    for s, (what, ends) in enumerate(zip(traffic, pace, strict=True)):
        if ends is not None:
            c = int(phases.first[s])
            steps_ns[:, c] = np.maximum(0, np.rint((ends - busiest[:, c]) * 1e9))
        elif not _has_protocols(topology, what):
            for c, at_once in phases.at_once(s, what):
                if not what.returns and at_once[0].message_nbytes is None:
                    continue  # flows that wait for no others
                found = _On.of(topology, group, row, load[:, c])
                laid = [found.laid(phase, _route(topology, devices, phase, routes)[0]) for phase in at_once]
                if what.returns:
                    stretches = [_stretch(topology, devices, one, node, routes) for one in laid]
                    steps_ns[:, c] = returning_ns(stretches, busiest[:, c], steps_ns[:, c])
                else:
                    steps_ns[:, c] = exposed_ns(laid, node, busiest[:, c], steps_ns[:, c])
    demands, of_phases = [], list[Demand]()
    for s, what in enumerate(traffic):
        mine, own = phases.of_signature(s), phases.own_of(s, what)
        if what.pipelined:
            seconds[:, :, mine.start] = overlapping[:, :, s]
        of_phases += [
            Demand(
                launch_ns=launch_ns if c == mine.start else np.zeros_like(launch_ns),
                route_ns=steps_ns[:, c],
                inside_steps=int(steps[0, c]),
                between_steps=int(steps[1, c]),
                inside=seconds[0, :, c],
                between=seconds[1, :, c],
                whole=busiest[:, c],
                own_nbytes=own[c - mine.start],
                pipelined=what.pipelined,
            )
            for c in range(mine.start, mine.stop)
        ]
        demands.append(_whole(of_phases[mine], whole[:, s], what))
    flows = _flows(traffic, phases, node, routes, (group, row, load))
    waits_for = load / capacity[row][:, None] >= busiest[group] * (1 - 2**-40)
    num_flows = phases.repeat(np.array([what.num_flows for what in traffic], dtype=np.int64))
    unit = np.where(waits_for, -(-load * num_flows // flows), np.iinfo(np.int64).max)
    peak = -np.stack([_max_by_group(group, -unit[:, c], n) for c in range(num)], axis=1).astype(np.int64)
    return Loads(
        demands=tuple(demands),
        of_phases=tuple(of_phases),
        phases=phases,
        group=group,
        row=row,
        load=load,
        peak=peak,
        memory=memory,
        memory_row=memory_row,
    )


def _stretch(
    topology: Topology,
    devices: NDArray[np.int64],
    one: Laid,
    node: NDArray[np.int64],
    routes: dict[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> Stretch:
    """A phase of which the first half of the flows is the way there."""
    phase, ways = one.phase, []
    hops = _route(topology, devices, phase, routes)[0].reshape(len(devices), len(phase.source), -1)
    half = len(phase.source) // 2
    for way in (slice(None, half), slice(half, None)):
        rows, nbytes = hops[:, way].reshape(len(devices), -1), np.repeat(phase.nbytes[way], hops.shape[2])
        group, row, load = _edges(rows, nbytes[:, None])
        ways.append(_busiest_of(load, topology.resources.capacity.astype(np.float64), group, row, len(devices))[:, 0])
    return Stretch(
        num_steps=phase.num_steps // 2,
        away=bool((node[phase.source] != node[phase.destination]).all()),
        latency_ns=one.latency_ns.max(axis=1),
        one_way=np.maximum(*ways),
        both=one.busiest.max(axis=1),
    )


def _has_protocols(topology: Topology, what: Traffic) -> bool:
    """Whether a library's protocols say what a step costs, and what of it bytes hide."""
    return bool(topology.protocols.get(what.algorithm))


def _pace(
    topology: Topology,
    devices: NDArray[np.int64],
    what: Traffic,
    routes: dict[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> NDArray[np.float64] | None:
    """When the members have ended, shape (n,) [s], where a phase begins for some before it has ended for others."""
    if what.pipelined or len(what.phases) < 2 or _has_protocols(topology, what):
        return None
    laid = []
    for phase in what.phases:
        hops, _ = _route(topology, devices, phase, routes)
        group, row, load = _edges(hops, np.repeat(phase.nbytes, hops.shape[1] // max(1, len(phase.nbytes)))[:, None])
        laid.append(_On.of(topology, group, row, load[:, 0]).laid(phase, hops))
    return paced(laid, devices.shape[1])


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _On:
    """What the groups put on which resource, to be looked up by flows: (group, row) as one sorted number, time [s]."""

    place: NDArray[np.int64]
    seconds: NDArray[np.float64]
    per_byte: NDArray[np.float64]
    latency_ns: NDArray[np.int64]

    @classmethod
    def of(cls, topology: Topology, group: NDArray[np.int64], row: NDArray[np.int64], load: NDArray[np.int64]) -> _On:
        capacity = topology.resources.capacity
        return cls(
            place=group * len(capacity) + row,
            seconds=np.append(load / capacity[row], 0.0),
            per_byte=np.append(1 / capacity, 0.0),
            latency_ns=np.append(topology.resources.latency_ns, 0),
        )

    def laid(self, phase: Phase, hops: NDArray[np.int64]) -> Laid:
        """The flows of a phase on their routes, shape (n, flows · hops)."""
        shape = len(hops), len(phase.source), -1
        place = np.where(hops < 0, -1, hops + np.arange(len(hops))[:, None] * (len(self.per_byte) - 1))
        at = np.minimum(np.searchsorted(self.place, place), max(0, len(self.place) - 1))
        crossed = np.where(np.append(self.place, -2)[at] == place, at, -1)
        return Laid(
            phase=phase,
            latency_ns=self.latency_ns[hops].reshape(shape).sum(axis=2),
            busiest=self.seconds[crossed].reshape(shape).max(axis=2, initial=0.0),
            per_byte=self.per_byte[hops].reshape(shape).max(axis=2, initial=0.0),
        )


def _merged(
    parts: Sequence[_Edges], num_rows: int, num_phases: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Edges of some phases each as those of all, as :func:`_edges` returns them."""
    places = [group * num_rows + row for _, group, row, _ in parts]
    place = np.unique(np.concatenate(places))
    load = np.zeros((len(place), num_phases), dtype=np.int64)
    for at, (columns, _, _, part) in zip(places, parts, strict=True):
        load[np.searchsorted(place, at)[:, None], columns] += part  # a place stands in a part once
    return place // num_rows, place % num_rows, load


def _whole(of_phases: Sequence[Demand], whole: NDArray[np.float64], what: Traffic) -> Demand:
    """A signature's phases together."""
    if len(of_phases) == 1:
        return of_phases[0]
    return Demand(
        launch_ns=of_phases[0].launch_ns,
        route_ns=np.sum([part.route_ns for part in of_phases], axis=0),
        inside_steps=sum(part.inside_steps for part in of_phases),
        between_steps=sum(part.between_steps for part in of_phases),
        inside=np.sum([part.inside for part in of_phases], axis=0),
        between=np.sum([part.between for part in of_phases], axis=0),
        whole=whole,
        own_nbytes=what.own_nbytes,
        pipelined=what.pipelined,
    )


def _flows(
    traffic: tuple[Traffic, ...],
    phases: Phases,
    node: NDArray[np.int64],
    routes: Mapping[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]],
    edges: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """How many flows of each phase cross each resource at once, shape (E, P); 1 where there are only bytes.

    Those of a pipelined collective, whose phases overlap, count together.
    """
    group, row, load = edges
    num_rows = int(row.max(initial=0)) + 1
    place = group * num_rows + row
    counted: dict[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    flows = np.zeros(load.shape, dtype=np.int64)
    for s, what in enumerate(traffic):
        for c, phase in zip(phases.columns(s, what), what.phases, strict=True):
            for _, part in _by_reach(phase, node):
                key = _key(part)
                if key not in counted:
                    hops = routes[key][0]
                    here, crossed, count = _edges(hops, np.ones((hops.shape[1], 1), dtype=np.int64))
                    kept = np.isin(here * num_rows + crossed, place, assume_unique=True)  # without what carries nothing
                    counted[key] = np.searchsorted(place, (here * num_rows + crossed)[kept]), count[kept, 0]
                at, count = counted[key]
                flows[at, c] += count
    return np.maximum(1, flows)


def _by_reach(phase: Phase, node: NDArray[np.int64]) -> list[tuple[int, Phase]]:
    """A phase's flows inside nodes (0) and between them (1); steps count where the farther flows are."""
    away = node[phase.source] != node[phase.destination]
    if away.all() or not away.any():
        return [(int(away.any()), phase)]
    kept = []
    for reach, mask in ((0, ~away), (1, away)):
        part = Phase(
            source=phase.source[mask],
            destination=phase.destination[mask],
            nbytes=phase.nbytes[mask],
            num_steps=reach * phase.num_steps,
            tree=None if phase.tree is None else phase.tree[mask],
        )
        kept.append((reach, part))
    return kept


def _busiest_of(
    load: NDArray[np.int64], capacity: NDArray[np.float64], group: NDArray[np.int64], row: NDArray[np.int64], n: int
) -> NDArray[np.float64]:
    """Time of each group's busiest resource by column of ``load``, shape (n, columns) [s]."""
    return np.stack([_max_by_group(group, load[:, c] / capacity[row], n) for c in range(load.shape[1])], axis=1)


def _busiest(
    crossed: Mapping[_Key, NDArray[np.int64]],
    routes: Mapping[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]],
    capacity: NDArray[np.float64],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """Time of the busiest link by these flows, shape (n, S) [s]."""
    if not crossed:
        return np.zeros(shape)
    rows = np.concatenate([routes[key][0] for key in crossed], axis=1)
    group, row, load = _edges(rows, np.concatenate(list(crossed.values())))
    return _busiest_of(load, capacity, group, row, shape[0])


def _route(
    topology: Topology,
    devices: NDArray[np.int64],
    phase: Phase,
    routes: dict[_Key, tuple[NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(n, flows · hops) rows and (n,) longest latency [ns] of a phase; signatures share most of their flows."""
    key = _key(phase)
    if key not in routes:
        source, destination = devices[:, phase.source], devices[:, phase.destination]
        hops = topology.route(source.reshape(-1), destination.reshape(-1))
        if phase.tree is not None and topology.in_network is not None:
            hops = _through_engines(hops, topology.in_network, source, destination, _added(phase, phase.tree))
        latency_ns = np.append(topology.resources.latency_ns, 0)[hops].sum(axis=1).reshape(source.shape)
        longest = latency_ns.max(axis=1) if source.shape[1] else np.zeros(len(devices), dtype=np.int64)
        hops = hops.reshape(len(devices), -1)
        routes[key] = hops if phase.tree is None else _once(hops, phase.tree), longest
    return routes[key]


def _added(phase: Phase, tree: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flows that are added up on their way: those of streams that come from several members."""
    _, stream = np.unique(tree, return_inverse=True)
    pairs = np.unique(np.stack([stream.reshape(-1), phase.source], axis=1), axis=0)
    sums: NDArray[np.bool_] = (np.bincount(pairs[:, 0]) > 1)[stream.reshape(-1)]
    return sums


def _through_engines(
    hops: NDArray[np.int64],
    in_network: InNetwork,
    source: NDArray[np.int64],
    destination: NDArray[np.int64],
    added: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Routes on which what is added up also crosses the switches' reduction engines; a copy needs none."""
    flows = np.broadcast_to(added, source.shape).reshape(-1)
    summed = in_network.router(source.reshape(-1)[flows], destination.reshape(-1)[flows])
    rows = np.full((len(hops), max(hops.shape[1], summed.shape[1])), -1, dtype=np.int64)
    rows[:, : hops.shape[1]] = hops
    rows[flows] = -1
    rows[flows, : summed.shape[1]] = summed
    return rows


def _key(phase: Phase) -> _Key:
    return phase.source.tobytes(), phase.destination.tobytes(), b"" if phase.tree is None else phase.tree.tobytes()


def _once(hops: NDArray[np.int64], tree: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hops of flows that switches add up or copy: each resource stands there once a tree, -1 for the other times."""
    stream = hops + (hops.max(initial=0) + 2) * np.repeat(tree, hops.shape[1] // max(1, len(tree)))
    order = np.argsort(stream, axis=1, kind="stable")
    ordered = np.take_along_axis(stream, order, axis=1)
    again = np.zeros(hops.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(again, -1, hops)


def _edges(
    rows: NDArray[np.int64], nbytes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sum what each group puts on each row.

    Parameters
    ----------
    rows : NDArray[int64], shape (n, k)
        rows that each group crosses, -1 for none; the same row may stand there several times
    nbytes : NDArray[int64], shape (k, S)
        what it puts on each by signature, alike for all groups

    Returns
    -------
    group, row : NDArray[int64], shape (E,)
        sorted by both
    load : NDArray[int64], shape (E, S)
    """
    used = nbytes.any(axis=1)
    if not used.all():
        rows, nbytes = rows[:, used], nbytes[used]
    num_rows = int(rows.max(initial=-1)) + 1
    if len(rows) * num_rows * nbytes.shape[1] <= rows.size:  # many flows over few resources: counting beats sorting
        return _counted(rows, nbytes, num_rows)
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    starts = ordered >= 0
    starts[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    valid = (ordered >= 0).reshape(-1)
    load = nbytes[order.reshape(-1)[valid]]
    first = np.flatnonzero(starts.reshape(-1)[valid])
    group, _ = np.nonzero(starts)
    return group, ordered[starts], np.add.reduceat(load, first, axis=0) if len(first) else load


_AT_ONCE = 1 << 20
"""Columns of routes that are counted together: their copies stay in some tens of megabytes."""


def _counted(
    rows: NDArray[np.int64], nbytes: NDArray[np.int64], num_rows: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """As :func:`_edges`, by adding every flow's bytes to its resource's."""
    n = len(rows)
    total = np.zeros((n * num_rows, nbytes.shape[1]), dtype=np.int64)
    seen = np.zeros(n * num_rows, dtype=bool)
    for group, start in product(range(n), range(0, rows.shape[1], _AT_ONCE)):
        block = rows[group, start : start + _AT_ONCE]
        valid = block >= 0
        place, carried = block[valid] + group * num_rows, nbytes[start : start + _AT_ONCE][valid]
        times = np.bincount(place, minlength=n * num_rows)
        seen |= times > 0
        if len(carried) and (carried == carried[0]).all():  # as in an all-to-all
            total += times[:, None] * carried[0]
        else:
            np.add.at(total, place, carried)
    place = np.flatnonzero(seen)
    return place // num_rows, place % num_rows, total[place]


def _max_by_group(group: NDArray[np.int64], value: NDArray[np.generic], n: int) -> NDArray[np.float64]:
    """Largest value of each group, 0 for a group without any; ``group`` is sorted."""
    result = np.zeros(n, dtype=value.dtype)
    if len(group):
        first = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        result[group[first]] = np.maximum.reduceat(value, first)
    return result
