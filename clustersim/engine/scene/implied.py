"""Resources that can never be full because narrower ones before or behind them would be full first.

What all groups put on an uplink has come through the ports of the nodes below it. Where the capacities of these ports
add up to no more than the uplink's, the uplink never binds: with x_g the rates, l_gu and l_gp the loads of group g on
the uplink u and on the ports p, l_gu <= Σ_p l_gp for every g gives Σ_g x_g·l_gu <= Σ_p Σ_g x_g·l_gp <= Σ_p c_p <= c_u.
Routes propose which resources stand behind which; the loads of the groups themselves prove it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.system.system import System
from clustersim.topology.topology import Topology

__all__ = ["find_implied"]


def find_implied(system: System, live: NDArray[np.bool_], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that need not be watched because others hold what is on them below their capacity.

    Parameters
    ----------
    live : NDArray[bool], shape (num_resources,)
        rows that could bind as far as is known
    kept : NDArray[int64]
        rows whose capacity may change: they stay, and shield no others
    """
    local = [edges.rows for edges in system.path_edges]
    open_to_all = np.zeros(len(live), dtype=bool)
    open_to_all[np.concatenate([kept, *local])] = True
    wide = live & ~open_to_all
    if not wide.any() or not system.blocks:
        return np.empty(0, dtype=np.int64)
    used = np.zeros(len(live), dtype=bool)
    for block in system.blocks:
        used[block.cost.row] = True
    narrow, parent = _neighbours(system.topology, np.unique(system.device))
    mine = wide[parent] & used[narrow] & ~np.isin(narrow, kept)
    narrow, parent = narrow[mine], parent[mine]
    capacity = system.topology.resources.capacity
    behind = np.zeros(len(live))  # floats: sums of whole capacities far below 2^53 B/s
    np.add.at(behind, parent, capacity[narrow])
    enough = (behind > 0) & (behind <= capacity)
    narrow, parent = narrow[enough[parent]], parent[enough[parent]]
    implied = np.zeros(len(live), dtype=bool)
    implied[parent] = True
    for block in system.blocks:
        if implied.any():
            _refute(block.cost.group, block.cost.row, block.cost.by_phase.load, narrow, parent, implied)
    return np.flatnonzero(implied)


def _neighbours(topology: Topology, devices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(narrower row, wider row) of pairs that follow each other on routes between devices far from each other."""
    if len(devices) < 2:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    per_node = max(1, len(devices) // topology.num_nodes)
    nodes = len(devices) // per_node
    far = np.roll(devices, -max(1, nodes // 2) * per_node if nodes > 1 else -1)
    routes = topology.route(devices, far)
    capacity = topology.resources.capacity
    pairs = []
    last = routes[:, 0]
    for row in routes.T[1:]:
        there = np.flatnonzero((row >= 0) & (last >= 0) & (capacity[row] != capacity[last]))
        a, b = last[there], row[there]
        up = capacity[a] < capacity[b]
        pairs.append(np.stack([np.where(up, a, b), np.where(up, b, a)], axis=1))
        last = np.where(row >= 0, row, last)
    found = np.unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs]), axis=0)
    return found[:, 0], found[:, 1]


def _refute(
    group: NDArray[np.int64],
    row: NDArray[np.int64],
    load: NDArray[np.int64],
    narrow: NDArray[np.int64],
    parent: NDArray[np.int64],
    implied: NDArray[np.bool_],
) -> None:
    """Take back rows on which a group of the block puts more, in some phase, than on all that stand behind them."""
    on = np.flatnonzero(implied[row])
    if not len(on):
        return
    size = len(implied)
    wanted, of = np.unique(group[on] * size + row[on], return_inverse=True)
    left = np.zeros((len(wanted), load.shape[1]), dtype=np.int64)
    np.add.at(left, of.reshape(-1), load[on])
    by_narrow = np.argsort(narrow, kind="stable")
    first = np.searchsorted(narrow[by_narrow], row)
    count = np.searchsorted(narrow[by_narrow], row, side="right") - first
    edge = np.repeat(np.arange(len(row)), count)
    place = np.arange(len(edge)) + np.repeat(first - np.cumsum(count) + count, count)
    key = group[edge] * size + parent[by_narrow][place]
    at = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
    there = wanted[at] == key
    np.subtract.at(left, at[there], load[edge[there]])
    implied[(wanted % size)[(left > 0).any(axis=1)]] = False
