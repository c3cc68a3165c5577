"""Classes of ranks, groups, resources and stores that nothing can tell apart.

``DESIGN.md`` states the theorem that the folded run is the full run, and its conditions; the code refers to them as
(a) to (h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.factorize import factorize
from clustersim.engine.scene.refine import Graph, refine
from clustersim.engine.system.system import System

__all__ = ["Classes", "find_classes", "own_memory"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Classes:
    """Number of the class of each vertex of the system's graph.

    Attributes
    ----------
    rank : NDArray[int64], shape (num_ranks,)
    group : NDArray[int64], shape (num_groups,)
    row : NDArray[int64], shape (number of resources that can bind,)
    store : NDArray[int64], shape (num_stores,)
    first_store : dict[tuple[int, str], int]
        (job, pool) -> number of its first store
    """

    rank: NDArray[np.int64]
    group: NDArray[np.int64]
    row: NDArray[np.int64]
    store: NDArray[np.int64]
    first_store: dict[tuple[int, str], int]


def find_classes(
    system: System, live: NDArray[np.bool_], launch_of: NDArray[np.int64], declared: Sequence[int]
) -> Classes:
    """Refine the graph of the system.

    Parameters
    ----------
    live : NDArray[bool], shape (num_resources,)
        those that can bind
    launch_of : NDArray[int64], shape (num_ranks,)
        number of the launch that each rank belongs to
    declared : Sequence[int]
        resources whose capacity may change: each is told apart from all others, condition (g)
    """
    own = own_memory(system, live)
    shared = live.copy()
    shared[own[own >= 0]] = False
    rows = np.flatnonzero(shared)
    ends = np.cumsum([system.num_ranks, system.num_groups, len(rows)])
    vertex_of_row = np.full(len(live), -1, dtype=np.int64)
    vertex_of_row[rows] = ends[1] + np.arange(len(rows))
    capacity = np.append(system.topology.resources.capacity, -1)
    varies = np.zeros(len(capacity), dtype=np.int64)
    varies[list(declared)] = 1 + np.arange(len(declared))
    edges = _Edges()
    group_colour = _join_groups(edges, system, shared, vertex_of_row)
    for of_path in system.path_edges:
        used = shared[of_path.rows]
        edges.join(of_path.ranks[used], vertex_of_row[of_path.rows[used]], ("path", of_path.label))
    store_colour, first_store, keys = _join_stores(edges, system, int(ends[2]))
    rank_columns = [launch_of, system.program_of, system.kind_of, capacity[own], varies[own]]
    if system.noise is not None:
        rank_columns.append(np.arange(system.num_ranks))
    kind = system.topology.resources.kind
    row_colour = factorize(kind[rows], capacity[rows], varies[rows]) if len(rows) else rows
    colour, offset = [], 0
    for part in (factorize(*rank_columns, *keys), group_colour, row_colour, store_colour):
        colour.append(part + offset)
        offset += int(part.max()) + 1 if len(part) else 0
    final = refine(edges.graph(np.concatenate(colour).astype(np.int64)))
    rank, group, row, store = (_in_order(part) for part in np.split(final, ends))
    row_of = np.full(len(live), -1, dtype=np.int64)
    row_of[rows] = row
    has_own = own >= 0
    row_of[own[has_own]] = (int(row.max()) + 1 if len(row) else 0) + rank[has_own]
    return Classes(rank=rank, group=group, row=row_of[np.flatnonzero(live)], store=store, first_store=first_store)


class _Edges:
    """Labelled edges, as they are found."""

    def __init__(self) -> None:
        self._u = [np.empty(0, np.int64)]
        self._v = [np.empty(0, np.int64)]
        self._label = [np.empty(0, np.int64)]
        self._labels: dict[object, int] = {}

    def join(self, u: NDArray[np.int64], v: NDArray[np.int64], name: object) -> None:
        """Join vertices pair by pair."""
        self._u.append(u)
        self._v.append(v)
        self._label.append(np.full(len(u), self._labels.setdefault(name, len(self._labels)), dtype=np.int64))

    def graph(self, colour: NDArray[np.int64]) -> Graph:
        """All of them, between vertices of these colours."""
        u, v, label = (np.concatenate(parts) for parts in (self._u, self._v, self._label))
        return Graph(colour=colour, u=u, v=v, label=label)


def _join_groups(
    edges: _Edges, system: System, shared: NDArray[np.bool_], vertex_of_row: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Join groups to their members and to the resources they load; the start colours of the groups."""
    colour = np.empty(system.num_groups, dtype=np.int64)
    next_colour = 0
    for b, block in enumerate(system.blocks):
        groups, by_phase = block.first + np.arange(len(block.members)), block.cost.by_phase
        for position, slot in enumerate(block.slots):
            # a rank's own memory is one vertex with the rank: what groups put on it is part of the membership
            memory = tuple(by_phase.memory_nbytes[position].tolist())
            edges.join(block.members[:, position], system.num_ranks + groups, ("slot", slot, memory))
        code = factorize(*by_phase.ns.T, *by_phase.peak_load.T)
        colour[groups] = next_colour + code
        next_colour += int(code.max()) + 1
        used = shared[block.cost.row]
        loads = factorize(*by_phase.load[used].T) if used.any() else np.empty(0, np.int64)
        for k in range(int(loads.max()) + 1 if len(loads) else 0):
            alike = np.flatnonzero(used)[loads == k]
            vertex = system.num_ranks + block.first + block.cost.group[alike]
            edges.join(vertex, vertex_of_row[block.cost.row[alike]], ("load", b, k))
    return colour


def _join_stores(
    edges: _Edges, system: System, first_vertex: int
) -> tuple[NDArray[np.int64], dict[tuple[int, str], int], list[NDArray[np.int64]]]:
    """Join ranks to the stores of their pools.

    Returns
    -------
    NDArray[int64], shape (num_stores,)
        start colours of the stores
    dict[tuple[int, str], int]
        (job, pool) -> number of its first store
    list[NDArray[int64]]
        of each pool, the ranks' keys in its stores: contenders for one store are told apart by the key that orders
        their grants, condition (d)
    """
    colour, keys = [np.empty(0, np.int64)], []
    first_store, num_stores = {}, 0
    for p, ((j, pool), (of, place)) in enumerate(system.stores.items()):
        first_store[j, pool] = num_stores
        ranks = np.arange(system.first_rank[j], system.first_rank[j + 1])
        edges.join(ranks, first_vertex + num_stores + of, ("pool", p))
        colour.append(np.full(int(of.max()) + 1, p, dtype=np.int64))
        num_stores += int(of.max()) + 1
        key = np.zeros(system.num_ranks, dtype=np.int64)
        key[ranks] = place
        keys.append(key)
    return np.concatenate(colour), first_store, keys


def own_memory(system: System, live: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Row of each rank's memory where it can bind and no other rank sits on that device, -1 elsewhere."""
    hbm = system.topology.local.get("hbm")
    if hbm is None:
        return np.full(system.num_ranks, -1, dtype=np.int64)
    rows = hbm.rows[system.device, 0]
    users = np.bincount(rows[rows >= 0], minlength=len(live))
    return np.where((rows >= 0) & live[rows] & (users[rows] == 1), rows, -1)


def _in_order(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number distinct values by their first appearance, so that class 0 is rank 0's."""
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse.reshape(-1)]
