"""Finding the strands of a program: chains of ops of which each releases the next one only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.role.flat import Flat
from clustersim.engine.strands.knot import Knots
from clustersim.engine.strands.strands import Strands
from clustersim.engine.strands.ties import Ties

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
    follower = _followers(flat, single, ties)
    ops, place = _in_order(follower)
    gate = np.full(len(flat), -1, dtype=np.int64)
    knot_behind = gate.copy()
    if ties is not None:
        gate = ties.gate
        knot_behind[ties.knots[:, 0]] = ties.number
    # a knot stands behind the op before it
    pairs = np.stack([np.full(len(ops), -1), knot_behind[ops]], axis=1).reshape(-1)
    kept = pairs >= 0
    kept[::2] = True
    knot, of = pairs[kept], np.repeat(ops, 2)[kept]
    starts = np.where(knot >= 0, of + 1, of)
    return Strands(
        starts,
        np.flatnonzero((place[of] == 0) & (knot < 0)),
        np.where(knot >= 0, 0, ns[of]),
        np.where(knot >= 0, 0, sm_ns[of]),
        knot,
        num_sms,
        len(flat),
        knots,
        _gates(starts, knot, gate, gate[of] > 0),
    )


def _followers(flat: Flat, single: NDArray[np.bool_], ties: Ties | None) -> NDArray[np.int64]:
    """By op, the one that stands behind it on its strand, past the knot between them if there is one; else -1."""
    follower = np.where(single, flat.follower, -1)
    in_knot = np.zeros(len(flat), dtype=bool)
    if ties is not None:
        first, last = ties.knots.T
        before, after = ties.edges.T
        gated = (np.diff(flat.first_target)[before] == 1) & (ties.gate[after] == 1) & single[before]
        follower[before[gated]] = after[gated]
        inside = np.zeros(len(flat) + 1, dtype=np.int64)
        inside[first + 1] += 1
        inside[last] -= 1
        in_knot = np.cumsum(inside)[: len(flat)] > 0
        follower[in_knot] = -1
    before = np.flatnonzero(follower >= 0)
    follower[before[~single[follower[before]] | in_knot[follower[before]]]] = -1
    if ties is not None:
        follower[first] = last
    return follower


def _in_order(follower: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ops of all strands, strand by strand, and by op its place on its strand."""
    n = len(follower)
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
    return ops[np.argsort(ahead[ops] * n + place[ops], kind="stable")], place


def _gates(
    starts: NDArray[np.int64], knot: NDArray[np.int64], gate: NDArray[np.int64], gated: NDArray[np.bool_]
) -> dict[int, tuple[tuple[int, int], ...]]:
    """By place, its ops that also wait for others, of knots all that do; see :class:`Strands`."""
    gates = {}
    for place in np.flatnonzero((knot >= 0) | gated).tolist():
        end = starts[place + 1] if knot[place] >= 0 else starts[place] + 1
        found = tuple((j, int(gate[j])) for j in range(starts[place], end) if gate[j] > 0)
        if found:
            gates[place] = found
    return gates
