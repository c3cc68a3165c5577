"""The proof finds what is wrong: schedules spoilt in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from clustersim.collective.steps.proof import prove
from clustersim.collective.steps.ring import ring
from clustersim.collective.steps.schedule import Schedule, Transfer
from clustersim.collective.traffic import GroupShape

FOUR = GroupShape(node=np.zeros(4, dtype=np.int64))
ALL_REDUCE = ring("all_reduce", 4000, FOUR)


def changed(number: int, change: Callable[[Transfer], Transfer]) -> Schedule:
    transfers = list(ALL_REDUCE.transfers)
    transfers[number] = change(transfers[number])
    return replace(ALL_REDUCE, transfers=tuple(transfers))


def without(number: int) -> Schedule:
    """Those after it, one earlier."""
    kept = [t for i, t in enumerate(ALL_REDUCE.transfers) if i != number]
    kept = [replace(t, after=tuple(b - (b > number) for b in t.after if b != number)) for t in kept]
    return replace(ALL_REDUCE, transfers=tuple(kept))


def test_the_unspoilt_one_is_right() -> None:
    prove(ALL_REDUCE)


@pytest.mark.parametrize("number", range(len(ALL_REDUCE.transfers)))
def test_every_transfer_is_needed(number: int) -> None:
    with pytest.raises(AssertionError):
        prove(without(number))


@pytest.mark.parametrize("number", [i for i, t in enumerate(ALL_REDUCE.transfers) if t.after])
def test_every_wait_is_needed(number: int) -> None:
    with pytest.raises(AssertionError, match="race"):
        prove(changed(number, lambda t: replace(t, after=())))


@pytest.mark.parametrize("number", [0, 5, 11])
def test_a_sum_that_is_overwritten_is_seen(number: int) -> None:
    with pytest.raises(AssertionError, match=r"ends with|race"):
        prove(changed(number, lambda t: replace(t, adds=False)))


@pytest.mark.parametrize("number", [12, 17, 23])
def test_a_contribution_that_counts_twice_is_seen(number: int) -> None:
    with pytest.raises(AssertionError, match="ends with"):
        prove(changed(number, lambda t: replace(t, adds=True)))


def test_forwarding_what_is_not_there_is_seen() -> None:
    spoilt = ring("all_gather", 4000, FOUR)
    first = replace(spoilt.transfers[0], chunks=(2,))
    with pytest.raises(AssertionError, match="without having it"):
        prove(replace(spoilt, transfers=(first, *spoilt.transfers[1:])))


def test_promising_less_than_the_kind_is_seen() -> None:
    nobody = np.zeros_like(ALL_REDUCE.wanted)
    with pytest.raises(AssertionError, match="does not want"):
        prove(replace(ALL_REDUCE, wanted=nobody))
    with pytest.raises(AssertionError, match="does not contribute"):
        prove(replace(ALL_REDUCE, held=nobody))
    for kind in ("all_gather", "reduce_scatter"):
        with pytest.raises(AssertionError, match="several members"):
            prove(replace(ALL_REDUCE, kind=kind))
    for kind, which in (("broadcast", "holds"), ("reduce", "wants")):
        with pytest.raises(AssertionError, match=f"only the root {which}"):
            prove(replace(ALL_REDUCE, kind=kind))
