"""What ties the ops of a program together: the edges along which strands run, the gates and the knots on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.role.flat import Flat
from clustersim.engine.strands.knot import Knots

__all__ = ["Ties", "find_ties"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Ties:
    """What ties the ops of a program together.

    Parameters
    ----------
    edges : NDArray[int64], shape (T, 2)
        (before, after) between ops that may be on strands or in knots, sorted by ``after``
    gate : NDArray[int64], shape (ops,)
        of an op that also waits for others, whose ends are told ahead: how many it waits for by ``edges``; else -1
    knots : NDArray[int64], shape (K, 2)
        the op before each knot and the op behind it; the knot's ops stand between these two in the program
    number : NDArray[int64], shape (K,)
        of each knot; equal ones take the same course
    """

    edges: NDArray[np.int64]
    gate: NDArray[np.int64]
    knots: NDArray[np.int64]
    number: NDArray[np.int64]


def find_ties(
    flat: Flat,
    single: NDArray[np.bool_],
    tied: NDArray[np.bool_],
    told: NDArray[np.bool_],
    made_of: NDArray[np.int64],
    lane: Sequence[int],
    known: Knots,
) -> Ties:
    """The ties of a program.

    Parameters
    ----------
    flat : Flat
    single : NDArray[bool], shape (ops,)
        ops that may stand on a strand by themselves
    tied : NDArray[bool], shape (ops,)
        further ops that may be in a knot
    told : NDArray[bool], shape (ops,)
        ops whose ends are told ahead
    made_of : NDArray[int64], shape (ops, columns)
        all that decides how long each op takes beside others
    lane : Sequence[int]
        what the lane adds to that
    known : Knots
    """
    n = len(flat)
    member = single | tied
    before, after = flat.direct.T
    gaps = np.cumsum(~member)  # members with as many gaps before them stand in one row without gaps
    within = member[before] & member[after] & (before < after) & (gaps[before] == gaps[after])
    edges = flat.direct[within]
    num_within = np.bincount(edges[:, 1], minlength=n)
    others, untold = (np.bincount(after[~within & (told[before] == of)], minlength=n) for of in (True, False))
    gate = np.where((others > 0) & (untold == 0), num_within, -1)
    from_elsewhere = (num_within == 0) | (untold > 0)
    to_elsewhere = np.bincount(before, minlength=n) == 0
    to_elsewhere[before[~within]] = True
    # ops that no edge passes by: all before them in the row comes before them, and all behind them after them
    passed = np.zeros(n + 1, dtype=np.int64)
    np.add.at(passed, edges[:, 0] + 1, 1)
    np.add.at(passed, edges[:, 1], -1)
    waists = np.flatnonzero(single & (np.cumsum(passed)[:n] == 0))
    first, last = waists[:-1], waists[1:]
    apart = np.append(0, np.cumsum(from_elsewhere | to_elsewhere))
    whole = apart[last] == apart[np.minimum(first + 1, n)]
    found = (gaps[first] == gaps[last]) & (last > first + 1) & whole & ~to_elsewhere[first] & ~from_elsewhere[last]
    knots = np.stack([first[found], last[found]], axis=1)
    back, first_edge = edges[:, 1] - edges[:, 0], np.append(0, np.cumsum(num_within))
    number = [
        known.number(
            (
                *lane,
                made_of[v + 1 : w].tobytes(),
                num_within[v + 1 : w + 1].tobytes(),
                back[first_edge[v + 1] : first_edge[w + 1]].tobytes(),
            )
        )
        for v, w in knots.tolist()
    ]
    return Ties(edges=edges, gate=gate, knots=knots, number=np.array(number, dtype=np.int64))
