"""Which resources can bind at all: the others leave the graph before the run.

A resource whose capacity is at least the sum of the stand-alone rates of all that can cross it at once never slows
anybody; nor does one whose users all load another, tighter one alike (a PCIe lane behind its network port), nor one
that narrower ones cannot fill together (an uplink above ports, ``implied.py``). Ops of one stream never overlap, so
each stream counts with its fastest op only; on a rank's own memory, where all its streams meet, only ops count together
that the program lets run together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.scene.crowding import HEAD_ROOM, find_crowded
from clustersim.engine.scene.dominated import find_dominated
from clustersim.engine.scene.implied import find_implied
from clustersim.engine.system.system import System

__all__ = ["Live", "find_live"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Live:
    """What takes part in sharing.

    Attributes
    ----------
    rows : NDArray[bool], shape (num_resources,)
        resources that can bind
    crowded : Mapping[tuple[int, int], NDArray[bool]]
        (program, kind) -> by op, whether its rank's memory may be asked for more than it has while the op runs; the
        others need not be watched for what they ask of it
    """

    rows: NDArray[np.bool_]
    crowded: Mapping[tuple[int, int], NDArray[np.bool_]]


def find_live(system: System, rounds: Sequence[int], declared: Iterable[int] = ()) -> Live:
    """Find what can bind.

    Parameters
    ----------
    rounds : Sequence[int]
        times that each job plays its programs
    declared : Iterable[int]
        rows whose capacity may change during the run; they always stay
    """
    kept = np.fromiter(declared, dtype=np.int64)
    capacity = system.topology.resources.capacity / 1e9  # [B/ns]
    bound = np.zeros(len(capacity))
    crowded = find_crowded(system, rounds, bound, kept)
    _add_paths(system, bound)
    _add_links(system, bound)
    if system.noise is not None:  # kernels may be faster than their cards say, so everything that is used may bind
        crowded, rows = {}, bound > 0
    else:
        rows = bound > capacity * HEAD_ROOM
    rows[find_implied(system, rows, kept)] = False
    rows[kept] = True
    rows[find_dominated(system, rows, kept)] = False
    return Live(rows=rows, crowded=crowded)


def _add_paths(system: System, bound: NDArray[np.float64]) -> None:
    """What ranks ask of everything but their own memory, stream by stream."""
    for edges in system.path_edges:
        if edges.path == "hbm":
            continue
        arrays = system.programs[edges.program]
        kinds = system.kind_of[edges.ranks]
        for kind in np.unique(kinds):
            costs = system.local[edges.program, int(kind)]
            ns = np.array([max(1, c.ns) if c is not None else 1 for c in costs], dtype=np.float64)
            fastest = np.zeros(len(arrays.streams))
            np.maximum.at(fastest, arrays.stream, (edges.loads / ns)[arrays.op])
            np.add.at(bound, edges.rows[kinds == kind], fastest.sum())


def _add_links(system: System, bound: NDArray[np.float64]) -> None:
    """What groups ask of everything but their members' memories."""
    kind_of_row, kinds = system.topology.resources.kind, system.topology.resources.kinds
    hbm_kind = kinds.index("hbm") if "hbm" in kinds else -1
    for block in system.blocks:
        cost = block.cost
        wire = kind_of_row[cost.row] != hbm_kind
        # one phase of one collective at a time
        rate = (cost.by_phase.load[wire] / np.maximum(cost.by_phase.ns, 1)[cost.group[wire]]).max(axis=1)
        np.add.at(bound, cost.row[wire], rate)
