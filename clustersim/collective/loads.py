"""What the collectives of many equal groups put on which resource, and the time that it takes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.edges import Edges
from clustersim.collective.exposed import exposed_ns
from clustersim.collective.laid import Burden
from clustersim.collective.pace import pace
from clustersim.collective.passage import Passage, by_reach
from clustersim.collective.phases import Phases
from clustersim.collective.routes import Key, Routes
from clustersim.collective.traffic import Phase, Traffic
from clustersim.collective.up_and_down import Stretch, returning_ns
from clustersim.hardware.protocol import Demand
from clustersim.topology.topology import Topology

__all__ = ["Loads", "loads_of"]


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
    n, routes = len(devices), Routes(topology, devices)
    node = topology.node_of[devices[0]]  # equal groups sit alike
    ends = [None if _has_protocols(topology, what) else pace(routes, what) for what in traffic]
    traffic = tuple(
        what if end is None else replace(what, pipelined=True) for what, end in zip(traffic, ends, strict=True)
    )
    phases = Phases.of(traffic)
    capacity = topology.resources.capacity.astype(np.float64)
    hbm = topology.local.get("hbm")
    memory_row = hbm.rows[devices, 0] if hbm is not None else np.full(devices.shape, -1, dtype=np.int64)
    memory = np.concatenate([phases.memory_of(s, what) for s, what in enumerate(traffic)], axis=1)
    passage = Passage.of(traffic, phases, routes, node)
    edges = passage.edges(phases, memory_row, memory, num_rows=len(capacity))
    busiest = edges.busiest(capacity, n)
    whole = busiest
    if phases.num_phases > len(traffic):
        whole = replace(edges, load=phases.total(edges.load)).busiest(capacity, n)
    for s, (what, end) in enumerate(zip(traffic, ends, strict=True)):
        if end is not None:
            c = int(phases.first[s])
            passage.steps_ns[:, c] = np.maximum(0, np.rint((end - busiest[:, c]) * 1e9))
        elif not _has_protocols(topology, what):
            _hide(what, phases.at_once(s, what), routes, node, edges, busiest, passage.steps_ns)
    overlapping = passage.overlapping(capacity, len(traffic))
    for s, what in enumerate(traffic):
        if what.pipelined:
            passage.seconds[:, :, phases.first[s]] = overlapping[:, :, s]
    of_phases = _of_phases(topology, devices, traffic, phases, passage, busiest)
    flows = _flows(traffic, phases, node, routes, edges)
    waits_for = edges.load / capacity[edges.row][:, None] >= busiest[edges.group] * (1 - 2**-40)
    num_flows = phases.repeat(np.array([what.num_flows for what in traffic], dtype=np.int64))
    unit = np.where(waits_for, -(-edges.load * num_flows // flows), np.iinfo(np.int64).max)
    peak = -np.stack([edges.largest(-unit[:, c], n) for c in range(phases.num_phases)], axis=1).astype(np.int64)
    return Loads(
        demands=tuple(_whole(of_phases[phases.of_signature(s)], whole[:, s], what) for s, what in enumerate(traffic)),
        of_phases=of_phases,
        phases=phases,
        group=edges.group,
        row=edges.row,
        load=edges.load,
        peak=peak,
        memory=memory,
        memory_row=memory_row,
    )


def _has_protocols(topology: Topology, what: Traffic) -> bool:
    """Whether a library's protocols say what a step costs, and what of it bytes hide."""
    return bool(topology.protocols.get(what.algorithm))


def _hide(
    what: Traffic,
    at_once: Sequence[tuple[int, tuple[Phase, ...]]],
    routes: Routes,
    node: NDArray[np.int64],
    edges: Edges,
    busiest: NDArray[np.float64],
    steps_ns: NDArray[np.int64],
) -> None:
    """Take from ``steps_ns`` the latency that the bytes of a signature hide."""
    for c, together in at_once:
        if not what.returns and together[0].message_nbytes is None:
            continue  # flows that wait for no others
        burden = Burden.of(routes, edges, c)
        laid = [burden.laid(phase) for phase in together]
        if what.returns:
            stretches = [Stretch.of(routes, one, node) for one in laid]
            steps_ns[:, c] = returning_ns(stretches, busiest[:, c], steps_ns[:, c])
        else:
            steps_ns[:, c] = exposed_ns(laid, node, busiest[:, c], steps_ns[:, c])


def _of_phases(
    topology: Topology,
    devices: NDArray[np.int64],
    traffic: Sequence[Traffic],
    phases: Phases,
    passage: Passage,
    busiest: NDArray[np.float64],
) -> tuple[Demand, ...]:
    """What each phase asks for; the first of a signature has the launch."""
    launches = np.array([round(g.launch_latency * 1e9) for g in topology.gpus])
    launch_ns = np.max(launches[topology.gpu_of[devices]], axis=1)
    found = []
    for s, what in enumerate(traffic):
        mine = phases.of_signature(s)
        for c, own_nbytes in zip(range(mine.start, mine.stop), phases.own_of(s, what), strict=True):
            found.append(
                Demand(
                    launch_ns=launch_ns if c == mine.start else np.zeros_like(launch_ns),
                    route_ns=passage.steps_ns[:, c],
                    inside_steps=int(passage.steps[0, c]),
                    between_steps=int(passage.steps[1, c]),
                    inside=passage.seconds[0, :, c],
                    between=passage.seconds[1, :, c],
                    whole=busiest[:, c],
                    own_nbytes=own_nbytes,
                    num_messages=_num_messages(what),
                    over_pcie=passage.over_pcie[:, c],
                    pipelined=what.pipelined,
                )
            )
    return tuple(found)


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
        num_messages=_num_messages(what),
        over_pcie=np.any([part.over_pcie for part in of_phases], axis=0),
        pipelined=what.pipelined,
    )


def _num_messages(what: Traffic) -> int:
    """That a member sends side by side, its own block among them."""
    return what.num_flows + (what.own_nbytes > 0)


def _flows(
    traffic: tuple[Traffic, ...], phases: Phases, node: NDArray[np.int64], routes: Routes, edges: Edges
) -> NDArray[np.int64]:
    """How many flows of each phase cross each resource at once, shape (E, P); 1 where there are only bytes.

    Those of a pipelined collective, whose phases overlap, count together.
    """
    num_rows = len(routes.topology.resources.capacity)
    place = edges.places(num_rows)
    counted: dict[Key, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    flows = np.zeros(edges.load.shape, dtype=np.int64)
    for s, what in enumerate(traffic):
        for c, phase in zip(phases.columns(s, what), what.phases, strict=True):
            for _, part in by_reach(phase, node):
                key = routes.key(part)
                if key not in counted:
                    hops, _ = routes.of(part)
                    crossed = Edges.of(hops, np.ones((hops.shape[1], 1), dtype=np.int64))
                    here = crossed.places(num_rows)
                    kept = np.isin(here, place, assume_unique=True)  # without what carries nothing
                    counted[key] = np.searchsorted(place, here[kept]), crossed.load[kept, 0]
                at, count = counted[key]
                flows[at, c] += count
    return np.maximum(1, flows)
