"""How the end of each op of a lane is found: known from the start, by its strand, or by what it meets on the way."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.cost.paths import paths
from clustersim.engine.loop.asked import Asked
from clustersim.engine.loop.end_code import COLLECTIVE, ELASTIC, POOLED, SLOWED, STRUNG
from clustersim.engine.role.flat import Flat
from clustersim.engine.role.role import Role
from clustersim.engine.scene.scene import LaneSpec
from clustersim.engine.scene.signature import Signature
from clustersim.engine.strands.find_strands import find_strands
from clustersim.engine.strands.knot import Knots
from clustersim.engine.strands.strands import Strands
from clustersim.engine.strands.ties import find_ties

__all__ = ["Ends", "codes", "find_ends"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ends:
    """Of the ops of a lane; equal lanes share them.

    Attributes
    ----------
    ns : array of int64
        by op, its duration where nothing can change it [ns], else a code of ``end_code.py``
    granted : dict[int, int]
        the same for ops that wait for a pool, once they have it
    strands : Strands
        of the ops that have the code ``STRUNG``
    """

    ns: array[int]
    granted: dict[int, int]
    strands: Strands


def codes(signatures: Sequence[Signature | None]) -> list[int]:
    """By signature: how long it takes [ns], or its code where that hangs on what it shares."""
    return [COLLECTIVE if s is None else ELASTIC if s.ns and s.demands else s.ns for s in signatures]


def find_ends(
    spec: LaneSpec,
    role: Role,
    signatures: Sequence[Signature | None],
    kind: NDArray[np.int64],
    taken: NDArray[np.int64],
    alone: NDArray[np.int64],
    asked: Asked | None,
) -> Ends:
    """Find out by op whether anything can change when it ends.

    Parameters
    ----------
    spec : LaneSpec
    role : Role
    signatures : Sequence[Signature | None]
    kind : NDArray[int64], shape (ops,)
        index into them
    taken : NDArray[int64], shape (ops,)
        SMs that each op takes from the lane
    alone : NDArray[int64], shape (ops,)
        duration of collectives that wait for nobody and share nothing but the lane's own memory [ns]; else -1
    asked : Asked, optional
        without it no ops are tied to knots
    """
    flat = role.flat
    ns = np.array(codes(signatures), dtype=np.int64)[kind]
    crowded = np.tile(spec.crowded, flat.rounds)
    # where a rank's own memory is never short, ops that use nothing else need not be watched
    own_only = np.array([all(name == "hbm" for name, _ in paths(o)) for o in flat.arrays.ops], dtype=bool)
    duration = np.array([0 if s is None else s.ns for s in signatures], dtype=np.int64)
    easy = (ns == ELASTIC) & own_only[role.op] & ~crowded
    ns[easy] = duration[kind[easy]]
    sm_bound = np.array([s is not None and s.sm_ns > 0 for s in signatures], dtype=bool)[kind]
    joint = (alone >= 0) & ~crowded
    if taken.any():
        slowed = sm_bound & (ns > 0)
        slowed[role.beside.pivot[role.beside.most(taken.astype(np.float64))[1::2] == 0]] = False
        ns[slowed] = SLOWED
        at_pivot = np.zeros(len(kind), dtype=bool)
        at_pivot[role.beside.pivot] = True
        if (sm_bound & ~at_pivot).any():
            joint &= taken == 0
        else:
            marked = np.zeros(2 * len(role.beside.pivot) + 1, dtype=bool)
            marked[1::2] = sm_bound[role.beside.pivot]
            joint &= (taken == 0) | ~role.beside.meets(marked)
    ns[joint] = alone[joint]
    granted = {k: int(ns[k]) for k in flat.pooled}
    ns[list(granted)] = POOLED
    sm_ns = np.array([0 if s is None else s.sm_ns for s in signatures])[kind]
    strands = _strands(spec, flat, ns, np.where(alone >= 0, alone, duration[kind]), sm_ns, taken, asked)
    return Ends(ns=array("q", ns.tobytes()), granted=granted, strands=strands)


def _strands(
    spec: LaneSpec,
    flat: Flat,
    ns: NDArray[np.int64],
    duration: NDArray[np.int64],
    sm_ns: NDArray[np.int64],
    taken: NDArray[np.int64],
    asked: Asked | None,
) -> Strands:
    """The strands of a lane; in ``ns`` their ops are coded so."""
    single = (ns >= 0) | (ns == SLOWED)
    single[list(flat.giving)] = False
    slowed = ns == SLOWED
    ties = None
    if asked is not None:
        times = np.where(ns >= 0, ns, np.maximum(duration, asked.ns))
        tied = ((ns == ELASTIC) | (ns == COLLECTIVE)) & (asked.number >= 0) & (times > 0)
        tied[list(flat.giving)] = False
        made_of = np.stack([np.minimum(ns, 0), times, sm_ns, taken, asked.number], axis=1)
        ties = find_ties(flat, single, tied, single & ~slowed, made_of, asked.lane, asked.knots)
    strands = find_strands(
        flat,
        single,
        np.where(slowed, duration, ns),
        np.where(slowed, sm_ns, 0),
        spec.num_sms,
        ties,
        asked.knots if asked is not None else Knots(),
    )
    ns[strands.on_strands()] = STRUNG
    return strands
