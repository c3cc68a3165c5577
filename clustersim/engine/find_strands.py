"""Finding the strands of a program: chains of ops of which each releases the next one only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.flat import Flat
from clustersim.engine.knot import Knots
from clustersim.engine.strands import Strands
from clustersim.engine.ties import Ties

__all__ = ["find_strands"]


def find_strands(
    flat: Flat,
    single: NDArray[np.bool_],
    ns: NDArray[np.int64],
    sm_ns: NDArray[np.int64],
    num_sms: int,
    ties: Ties | None,
    knots: Knots,
) -> Strands:
    """The strands of two ops and more.

    Parameters
    ----------
    flat : Flat
    single : NDArray[bool], shape (ops,)
        ops whose end is known when they start, but for the SMs that are taken from them
    ns, sm_ns : NDArray[int64], shape (ops,)
        of those, as :class:`Strands` has them
    ties : Ties, optional
        without them strands have neither gates nor knots
    knots : Knots
    """
    n = len(flat)
    follower = np.where(single, flat.follower, -1)
    knot_behind = np.full(n, -1, dtype=np.int64)
    gate = np.full(n, -1, dtype=np.int64)
    in_knot = np.zeros(n, dtype=bool)
    if ties is not None:
        gate, (first, last) = ties.gate, ties.knots.T
        before, after = ties.edges.T
        gated = (np.diff(flat.first_target)[before] == 1) & (gate[after] == 1) & single[before]
        follower[before[gated]] = after[gated]
        inside = np.zeros(n + 1, dtype=np.int64)
        inside[first + 1] += 1
        inside[last] -= 1
        in_knot = np.cumsum(inside)[:n] > 0
        follower[in_knot] = -1
    joined_to = np.flatnonzero(follower >= 0)
    follower[joined_to[~single[follower[joined_to]] | in_knot[follower[joined_to]]]] = -1
    if ties is not None:
        follower[first] = last
        knot_behind[first] = ties.number
    before = np.flatnonzero(follower >= 0)
    ahead = np.arange(n)
    ahead[follower[before]] = before
    place = (ahead != np.arange(n)).astype(np.int64)
    joined = place > 0
    joined[before] = True
    while True:  # each round looks twice as far ahead
        farther = ahead[ahead]
        if np.array_equal(farther, ahead):
            break
        place += place[ahead]
        ahead = farther
    ops = np.flatnonzero(joined)
    ops = ops[np.argsort(ahead[ops] * n + place[ops], kind="stable")]
    # a knot stands behind the op before it
    pairs = np.stack([np.full(len(ops), -1), knot_behind[ops]], axis=1).reshape(-1)
    kept = pairs >= 0
    kept[::2] = True
    knot, of = pairs[kept], np.repeat(ops, 2)[kept]
    heads = np.flatnonzero((place[of] == 0) & (knot < 0))
    starts = np.where(knot >= 0, of + 1, of)
    gates: dict[int, list[tuple[int, int]]] = {}
    for p in np.flatnonzero((knot >= 0) | (gate[of] > 0)).tolist():
        inner = range(starts[p], starts[p + 1]) if knot[p] >= 0 else range(starts[p], starts[p] + 1)
        found = [(j, int(gate[j])) for j in inner if gate[j] > 0]
        if found:
            gates[p] = found
    return Strands(
        starts,
        heads,
        np.where(knot >= 0, 0, ns[of]),
        np.where(knot >= 0, 0, sm_ns[of]),
        knot,
        num_sms,
        n,
        knots,
        {place: tuple(ops) for place, ops in gates.items()},
    )
