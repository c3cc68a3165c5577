"""Pools: first come, first served, and nobody overtakes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from clustersim.engine.simulate import simulate
from clustersim.workload.job import Pool

FOLD = pytest.mark.parametrize("fold", [True, False])


def starts(star: ModuleType, *ops: tuple[int, int, dict[str, int]], fold: bool, **pools: int) -> list[int]:
    """Start of each op (when it is ready [ns], how long it takes [ns], what it takes and gives back)."""
    p = star.program()
    for k, (ready, ns, takes) in enumerate(ops):
        p.add(star.delay(ready, name=f"wait {k}"), stream=f"{k}")
        p.add(star.delay(ns, name=f"op {k}"), stream=f"{k}", takes=takes, gives=takes)
    job = star.job(p, pools={name: Pool(capacity=capacity) for name, capacity in pools.items()})
    seen = star.times(simulate(star.cluster(1, 1), job, fold=fold), 0)
    return [seen[f"op {k}"][0] for k in range(len(ops))]


@FOLD
def test_one_after_the_other(star: ModuleType, fold: bool) -> None:
    ops = [(0, 100, {"a": 1}), (20, 100, {"a": 1}), (10, 100, {"a": 1})]
    assert starts(star, *ops, fold=fold, a=1) == [0, 200, 100]


@FOLD
def test_of_requests_at_one_instant_the_first_op_goes_first(star: ModuleType, fold: bool) -> None:
    assert starts(star, *[(5, 100, {"a": 1})] * 3, fold=fold, a=2) == [5, 5, 105]


@FOLD
def test_who_wants_much_is_not_overtaken_by_who_wants_little(star: ModuleType, fold: bool) -> None:
    ops = [(0, 100, {"a": 1}), (1, 50, {"a": 2}), (2, 10, {"a": 1})]
    assert starts(star, *ops, fold=fold, a=2) == [0, 100, 150]


@FOLD
def test_who_waits_for_one_pool_keeps_its_place_in_the_line_of_another(star: ModuleType, fold: bool) -> None:
    """The second op waits for ``a``; the third wants ``b``, which is free, but is behind it."""
    ops = [(0, 100, {"a": 1}), (1, 50, {"a": 1, "b": 1}), (2, 10, {"b": 1})]
    assert starts(star, *ops, fold=fold, a=1, b=1) == [0, 100, 150]


@FOLD
@pytest.mark.parametrize(("scope", "expected"), [("rank", [0, 0, 0, 0]), ("node", [0, 100, 0, 100])])
def test_scopes(star: ModuleType, scope: Any, expected: list[int], fold: bool) -> None:
    p = star.program()
    p.add(star.delay(100), stream="main", takes={"a": 1}, gives={"a": 1})
    job = star.job(p, p, p, p, pools={"a": Pool(capacity=1, scope=scope)})
    run = simulate(star.cluster(2, 2), job, fold=fold)
    assert [star.times(run, rank)["delay"][0] for rank in range(4)] == expected


@FOLD
def test_one_store_for_a_job(star: ModuleType, fold: bool) -> None:
    """Grants of one instant go by rank."""
    p = star.program()
    p.add(star.delay(100), stream="main", takes={"a": 1}, gives={"a": 1})
    job = star.job(p, p, p, p, pools={"a": Pool(capacity=1, scope="job")})
    run = simulate(star.cluster(2, 2), job, fold=fold)
    assert [star.times(run, rank)["delay"][0] for rank in range(4)] == [0, 100, 200, 300]
