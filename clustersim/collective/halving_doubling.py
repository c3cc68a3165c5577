"""Recursive halving and doubling: each step exchanges with a partner twice as far, in log2 n steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.channels import collective_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import handed_over, memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic

__all__ = ["halving_doubling"]

KINDS = ("all_reduce", "all_gather", "reduce_scatter")


def halving_doubling(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of Rabenseifner's algorithm.

    Reduce-scatter halves: in step k = 0, 1, … member i sends its partner i XOR 2^k, of the S/2^k that it still adds up,
    the half S/2^(k+1) that the partner's side keeps. So neighbours exchange most and the farthest least. All-gather
    doubles: the same exchanges, in the other order and direction. All-reduce does both: 2·log2 n steps, 2(n-1)/n·S
    sent by each. No step begins before the one before has ended.

    **Not a power of two.** With p the largest power of two below n and r = n - p, the first 2r members pair up before
    and after: the even one gives its S to the odd one, which takes part for both, and gets the result from it. In
    reduce-scatter and all-gather the odd one takes two of the n blocks through the exchanges, and the even one keeps
    its own block to itself: S - S/n goes one way, S/n the other.

    **Rounding.** Blocks, S/p in all-reduce and S/n in the others, are rounded up to whole bytes.

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter"}
    nbytes : int
        payload S [B]
    shape : GroupShape
        members pair up by their positions, wherever they sit

    Raises
    ------
    BadInput
        when ``kind`` is another or ``nbytes`` is negative

    References
    ----------
    Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in MPICH", International
    Journal of High Performance Computing Applications 19 (2005), sections 4.1, 4.3 and 4.5.
    """
    require_call("halving_doubling", kind, nbytes, KINDS)
    n = shape.num_members
    p = 1 << (n.bit_length() - 1)
    even = np.arange(0, 2 * (n - p), 2, dtype=np.int64)
    taking_part = np.concatenate([even + 1, np.arange(2 * len(even), n, dtype=np.int64)])
    blocks = np.ones(p, dtype=np.int64)
    block = -(-nbytes // (p if kind == "all_reduce" else n))
    before = after = nbytes
    if kind != "all_reduce":
        blocks[: len(even)] = 2
        before, after = (block, (n - 1) * block) if kind == "all_gather" else ((n - 1) * block, block)

    halving = _exchanges(taking_part, blocks * block)
    doubling = [_carrying(step.destination, step.source, step.nbytes) for step in reversed(halving)]
    steps = {"all_reduce": [*halving, *doubling], "all_gather": doubling, "reduce_scatter": halving}[kind]
    if len(even):
        first = _carrying(even, even + 1, np.full_like(even, before))
        last = _carrying(even + 1, even, np.full_like(even, after))
        steps = [first, *steps, last]
    phases = tuple(steps)
    return Traffic(
        algorithm="halving_doubling",
        phases=phases,
        pipelined=False,
        memory_nbytes=memory_traffic(kind, nbytes, shape, phases) + handed_over(phases, n),
        num_sms=collective_sms(Layout.of(shape)),
        own_nbytes=block,
    )


def _exchanges(members: NDArray[np.int64], nbytes: NDArray[np.int64]) -> list[Phase]:
    """Halving among a power of two of ``members``, of which each ends with its own ``nbytes`` added up."""
    place = np.arange(len(members))
    steps = []
    reach = 1
    while reach < len(members):
        partner = place ^ reach
        side = place % (2 * reach)  # members that agree in these bits get their blocks over the same way
        kept = np.zeros(2 * reach, dtype=np.int64)
        np.add.at(kept, side, nbytes)
        steps.append(_carrying(members, members[partner], kept[side[partner]]))
        reach *= 2
    return steps


def _carrying(source: NDArray[np.int64], destination: NDArray[np.int64], nbytes: NDArray[np.int64]) -> Phase:
    return Phase(source=source, destination=destination, nbytes=nbytes, num_steps=1)
