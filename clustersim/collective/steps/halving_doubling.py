"""Recursive halving and doubling, step by step: exchanges with partners twice as far, then half as far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from clustersim.collective.halving_doubling import KINDS
from clustersim.collective.steps.parts import cut
from clustersim.collective.steps.schedule import Schedule, Script, require_steps
from clustersim.collective.traffic import GroupShape

__all__ = ["halving_doubling"]


def halving_doubling(kind: str, nbytes: int, shape: GroupShape, num_slices: int = 1) -> Schedule:
    """Transfers of :func:`clustersim.collective.halving_doubling.halving_doubling`.

    A member goes through its steps one after the other: an exchange begins when both partners have ended their last.
    Members of which no partner is late go ahead of the others. To a reduce-scatter's even member, which sits out, its
    partner returns the sum of all other contributions, to which it adds its own.

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter"}
    nbytes : int
        payload S [B]
    shape : GroupShape
    num_slices : int
        messages that an exchange is cut into

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, or ``num_slices`` is not positive
    """
    require_steps("halving_doubling", kind, nbytes, KINDS, num_slices)
    n = shape.num_members
    p = 1 << (n.bit_length() - 1)
    pairs = [(i, i + 1) for i in range(0, 2 * (n - p), 2)]
    taking_part = [*(odd for _, odd in pairs), *range(2 * len(pairs), n)]
    places = [[q] for q in range(p)]  # the blocks of each
    if kind != "all_reduce":
        places = [[i, i + 1] for i, _ in pairs] + [[i] for i in taking_part[len(pairs) :]]
    num_blocks = p if kind == "all_reduce" else n
    script = Script(n, cut(nbytes, num_blocks * num_slices))

    done: list[list[int]] = [[] for _ in range(n)]  # transfers of each member's last step

    def send(source: int, destination: int, blocks: Sequence[int], *, adds: bool) -> list[int]:
        after = [*done[source], *done[destination]]
        return [
            script.send(source, destination, [block * num_slices + s for block in blocks], adds=adds, after=after)
            for s in range(num_slices)
        ]

    def exchange(reach: int, *, halving: bool) -> None:
        sent = []
        for q, member in enumerate(taking_part):
            side = (q ^ reach if halving else q) % (2 * reach)  # whose blocks go
            blocks = [block for place in range(side, p, 2 * reach) for block in places[place]]
            sent.append(send(member, taking_part[q ^ reach], blocks, adds=halving))
        for q, member in enumerate(taking_part):
            done[member] = [*sent[q], *sent[q ^ reach]]

    reaches = [1 << k for k in range(p.bit_length() - 1)]
    all_blocks = range(num_blocks)
    for even, odd in pairs:
        gives = {"all_gather": [even], "reduce_scatter": [b for b in all_blocks if b != even]}.get(kind, all_blocks)
        done[odd] = send(even, odd, gives, adds=kind != "all_gather")
    if kind != "all_gather":
        for reach in reaches:
            exchange(reach, halving=True)
    if kind != "reduce_scatter":
        for reach in reversed(reaches):
            exchange(reach, halving=False)
    for even, odd in pairs:
        gets = {"all_gather": [b for b in all_blocks if b != even], "reduce_scatter": [even]}.get(kind, all_blocks)
        send(odd, even, gets, adds=kind == "reduce_scatter")
    every = np.ones(script.shape, dtype=bool)
    own = np.arange(script.shape[1]) // num_slices == np.arange(n)[:, None]
    held, wanted = own if kind == "all_gather" else every, own if kind == "reduce_scatter" else every
    return script.schedule("halving_doubling", kind, held, wanted)
