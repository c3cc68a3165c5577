"""Use of resources over time, read off the record: nothing is counted while the clock runs.

An op that kept one rate used its load evenly from start to end; one whose rate changed left its history behind. So the
integral of what is used is, op by op, the bytes that the op's algorithm puts on the resource.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.engine import Engine
from clustersim.engine.factorize import factorize
from clustersim.engine.record.segments import Segments, segments
from clustersim.topology.naming import patterns
from clustersim.topology.resources import ResourceTable
from clustersim.trace.record import Rates

__all__ = ["usage"]


def usage(engine: Engine) -> list[Rates]:
    """One entry for each class of resources that the same classes of ops use alike, those with users only."""
    scene = engine.scene
    system, resources = scene.system, scene.system.topology.resources
    lane_of = np.concatenate([np.asarray(of) for of in scene.lane_of])
    num_lanes = len(scene.lanes)
    rows, users, loads = [], [], []
    tables: list[NDArray[np.int64]] = []
    for edges in system.path_edges:
        rows.append(edges.rows)
        users.append(lane_of[edges.ranks])
        loads.append(np.full(len(edges.rows), len(tables)))
        tables.append(edges.loads)
    for block in system.blocks:
        load = block.cost.by_phase.load
        code = factorize(*load.T) if len(load) else np.empty(0, np.int64)
        first = np.unique(code, return_index=True)[1]
        rows.append(block.cost.row)
        users.append(num_lanes + scene.meeting_of[block.first + block.cost.group])
        loads.append(len(tables) + code)
        tables += list(load[first])
    if not sum(map(len, rows)):
        return []
    row, user, table = np.concatenate(rows), np.concatenate(users), np.concatenate(loads)
    order = np.lexsort((table, user, row))
    row, user, table = row[order], user[order], table[order]
    first = np.flatnonzero(np.concatenate([[True], row[1:] != row[:-1]]))
    last = np.append(first[1:], len(row))
    kinds: dict[bytes, list[int]] = {}
    for k, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        r = int(row[a])
        key = b"%d %d " % (resources.kind[r], resources.capacity[r]) + user[a:b].tobytes() + table[a:b].tobytes()
        kinds.setdefault(key, []).append(k)
    cache: dict[int, tuple[NDArray[np.int64], Segments]] = {}
    result = []
    for alike in kinds.values():
        a, b = int(first[alike[0]]), int(last[alike[0]])
        parts = []
        for participant, of in zip(user[a:b].tolist(), table[a:b].tolist(), strict=True):
            if participant not in cache:
                cache[participant] = segments(engine, participant)
            signature, (begin, end, fraction) = cache[participant]
            load = tables[of][signature].astype(np.float64)
            used = (load > 0) & (end > begin)
            parts.append((begin[used], end[used], fraction[used] * load[used] / (end[used] - begin[used]) * 1e9))
        begin, end, rate = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(begin):
            result.append(_steps(resources, row[first[alike]], begin, end, rate))
    return result


def _steps(
    resources: ResourceTable,
    rows: NDArray[np.int64],
    begin: NDArray[np.float64],
    end: NDArray[np.float64],
    rate: NDArray[np.float64],
) -> Rates:
    """Of the resources in ``rows``, which are used alike: at ``rate`` from ``begin`` to ``end``."""
    when = np.concatenate([begin, end])
    time_ns, at = np.unique(when, return_inverse=True)
    size = len(time_ns)
    used: NDArray[np.float64] = np.cumsum(
        np.bincount(at.reshape(-1), weights=np.concatenate([rate, -rate]), minlength=size)
    )
    users = np.cumsum(np.bincount(at.reshape(-1), weights=np.repeat([1.0, -1.0], len(begin)), minlength=size))
    users = np.rint(users).astype(np.int64)
    used[users == 0] = 0.0  # rounding of the running sum
    name = resources.name(int(rows[0]))
    return Rates(
        name=name,
        kind=resources.kinds[resources.kind[rows[0]]],
        multiplicity=len(rows),
        capacity=float(resources.capacity[rows[0]]),
        time_ns=time_ns.astype(np.int64),
        used=used,
        users=users,
        stands_for=patterns(resources, rows) if len(rows) > 1 else name,
        rows=rows,
    )
