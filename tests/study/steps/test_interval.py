"""Intervals of predicted steps: from other sources, in the row's own metric."""

from __future__ import annotations

import math
from typing import Any

import pytest

from clustersim.analysis.step_residual import load_step_residual
from clustersim.study.steps.interval import learn, num_origins, origin, with_intervals
from clustersim.study.validated_row import ValidatedRow


def row(source: str, log: float = 0.0, metric: str = "iteration_time", **changes: Any) -> ValidatedRow:
    """A row whose measured time is e^log of the predicted one."""
    given: dict[str, Any] = {"id": source, "line": 2, "family": "f", "source": source, "metric": metric, "unit": "s"}
    given |= {"predicted": 2.0, "measured": 2.0 * math.exp(log if metric == "iteration_time" else -log), "spread": 0.0}
    return ValidatedRow(**(given | {"labels": {"how_obtained": "read", "confidence": "high"}} | changes))


def test_releases_of_a_table_are_one_source() -> None:
    tables = [row(f"NeMo {release} summary") for release in ("25.09", "26.02.01", "24.07-v1")]
    assert {origin(one) for one in tables} == {"NeMo summary"}
    assert origin(row("Table 1")) == "Table 1"


def test_an_interval_comes_from_the_other_sources() -> None:
    others = [row(name, log) for name, log in (("a", 0.1), ("b", -0.1), ("c", 0.1), ("d", -0.1))]
    far = with_intervals([*others, row("far", 1.0)])[-1]
    assert far.interval is not None
    assert list(far.interval) == pytest.approx([2 * math.exp(-0.1), 2 * math.exp(0.1)])
    assert far.inside is False


def test_a_rate_has_the_interval_of_its_time() -> None:
    rows = [row(name, log) for name, log in (("a", 0.2), ("b", 0.22), ("c", 0.18))]
    rate = with_intervals([*rows, row("d", 0.0, metric="tflops_per_gpu")])[-1]
    assert rate.interval is not None
    low, high = rate.interval
    assert low < 2 * math.exp(-0.2)
    assert high == pytest.approx(2.0)
    assert rate.inside is True


def test_of_few_sources_the_shipped_card_tells() -> None:
    (one,) = with_intervals([row("a", 0.3)])
    assert one.interval == pytest.approx(load_step_residual().interval(2.0, 0.0))


def test_what_is_no_time_or_not_predicted_has_none() -> None:
    memory, refused = row("a", metric="peak memory", spread=None), row("b", predicted=None)
    assert [one.interval for one in with_intervals([memory, refused])] == [None, None]
    assert [one.inside for one in with_intervals([memory, refused])] == [None, None]


def test_rows_of_low_confidence_or_from_memory_teach_nothing() -> None:
    sure = [row(name, 0.1) for name in "abc"]
    doubted = [
        row("d", 1.0, labels={"how_obtained": "memory", "confidence": "high"}),
        row("e", 1.0, labels={"how_obtained": "read", "confidence": "low"}),
    ]
    assert learn([*sure, *doubted]) == learn(sure)
    assert num_origins([*sure, *doubted]) == (3, 3)
    assert learn(sure[:2]) is None
