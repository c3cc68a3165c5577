"""How long ranks wait for each other's copies where each has one run of the weights."""

from __future__ import annotations

import pytest

from clustersim.workload.offload.contiguous_parts import copying_turns
from clustersim.workload.offload.subgroup import Subgroup


def of(*shares: int, index: int = 0, axis: str = "dp") -> Subgroup:
    """A rank's part of as many blocks as there are shares."""
    return Subgroup(index=index, count=1, axis=axis, chunk=0, parts=tuple(enumerate(shares)))


EVEN = of(*[100] * 8)


@pytest.mark.parametrize(
    ("blocks", "ranks", "turns"),
    [
        ((7,), 8, 8),  # a block is one rank's: it copies all of it, and its mean share is an eighth
        ((6, 7), 8, 4),  # two ranks copy half each
        ((6, 7), 4, 4),
        (range(8), 8, 1),  # every rank copies its part at the same time
        (range(8), 2, 1),
        ((2, 3, 4), 2, 4 / 3),  # two thirds are one rank's
        ((5,), 1, 1),
    ],
)
def test_the_longest_piece_against_the_mean(blocks: tuple[int, ...], ranks: int, turns: float) -> None:
    assert copying_turns(tuple(blocks), EVEN, [EVEN], ranks) == pytest.approx(turns)


def test_all_buckets_together_take_as_long_as_the_whole_by_one_rank() -> None:
    """DeepSpeed pull request 1067: one rank at a time, of buckets that are no larger than a partition."""
    taken = sum(copying_turns((block,), EVEN, [EVEN], 4) * 100 for block in range(8))
    assert taken == 4 * 800


def test_weights_of_other_axes_are_laid_out_by_themselves() -> None:
    experts = of(*[400] * 8, index=1, axis="edp")
    assert copying_turns((0,), EVEN, [EVEN, experts], 8) == 8
    assert copying_turns((0,), experts, [EVEN, experts], 2) == 2


def test_subgroups_follow_each_other() -> None:
    first, second = of(100, 100), Subgroup(index=1, count=2, axis="dp", chunk=0, parts=((2, 100), (3, 100)))
    assert copying_turns((2, 3), second, [first, second], 2) == 2
    assert copying_turns((1,), first, [first, second], 4) == 4


def test_nothing_is_no_turn() -> None:
    assert copying_turns((9,), EVEN, [EVEN], 8) == 1
