"""Sweeps in this process and in a pool."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from clustersim.library.job import JobSetup
from clustersim.study import sweep as sweep_function
from clustersim.study.sweep import points, sweep

VARY: dict[str, list[Any]] = {"plan.tp": [1, 2, 5], "micro_batch": [1, 2]}


def without_clock(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "wall_s"} for row in rows]


def test_the_product_with_the_last_key_fastest() -> None:
    assert points({"a": [1, 2], "b": [3, 4]}) == [
        {"a": 1, "b": 3},
        {"a": 1, "b": 4},
        {"a": 2, "b": 3},
        {"a": 2, "b": 4},
    ]


def test_a_pool_gives_the_same_rows(tiny: JobSetup) -> None:
    done: list[int] = []
    alone = sweep(tiny, VARY, progress=done.append)
    with ThreadPoolExecutor(2) as executor:
        pooled = sweep(tiny, VARY, executor=executor)
    assert without_clock(pooled) == without_clock(alone)
    assert done == [1, 2, 3, 4, 5, 6]
    assert [row["status"] for row in alone] == ["ok"] * 4 + ["bad_input"] * 2
    assert sweep_function is sweep


def test_an_interrupt_keeps_the_rows_there_are(tiny: JobSetup) -> None:
    def stop(done: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    rows = sweep(tiny, {"micro_batch": [1, 2]} | {"steps": [1, 2]}, progress=stop)
    assert sorted(row["status"] for row in rows) == ["interrupted", "interrupted", "ok", "ok"]
    assert {tuple(row["point"].values()) for row in rows} == {(1, 1), (1, 2), (2, 1), (2, 2)}


def test_a_sweep_of_one_refused_point_says_why(tiny: JobSetup) -> None:
    (row,) = sweep(tiny, {"plan.tp": [5]})
    assert row["status"] == "bad_input"
    assert row["errors"][0]["key"] == "plan.tp"


@pytest.mark.parametrize("fold", [True, False])
def test_fold_is_handed_on(tiny: JobSetup, fold: bool) -> None:
    (row,) = sweep(tiny, {"steps": [1]}, fold=fold)
    assert row["num_classes"] == (1 if fold else 8)
