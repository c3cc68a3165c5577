"""Ranks that each have one run of the weights: how many of them copy gradients one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["copying_turns"]


def copying_turns(blocks: Sequence[int], subgroup: Subgroup, subgroups: Sequence[Subgroup], ranks: int) -> float:
    """How many times as long as a mean part the longest part of some gradients is, from 1 to ``ranks``.

    Weights are laid out in forward order and cut into as many equal runs as there are ranks. What a backward pass
    brings at a time is a piece of that: of n weights of all ranks the longest piece that one rank has, l, is copied
    while the others wait for it at their next reduction, so that turns = l / (n / ranks).

    Parameters
    ----------
    blocks : Sequence[int]
        whose gradients leave together
    subgroup : Subgroup
        that they are of
    subgroups : Sequence[Subgroup]
        of the chunk, in forward order
    ranks : int
        that divide the weights

    References
    ----------
    DeepSpeed, ``runtime/zero/stage_1_and_2.py``, ``get_data_parallel_partitions`` and ``reduce_ipg_grads``, which lets
    the rank that has a parameter copy it; pull request 1067: copying "occurs one rank at a time".
    """
    alike = [s for s in subgroups if s.axis == subgroup.axis]
    run = sum(s.parameters for s in alike) / ranks
    before = sum(s.parameters for s in alike if s.index < subgroup.index)
    before += sum(weights for block, weights in subgroup.parts if block < min(blocks))
    end = before + sum(weights for block, weights in subgroup.parts if block in blocks)
    if run <= 0 or end <= before:
        return 1.0
    cuts = [before, *(n * run for n in range(1, ranks) if before < n * run < end), end]
    longest = max(after - start for start, after in pairwise(cuts))
    return max(1.0, longest * ranks / (end - before))
