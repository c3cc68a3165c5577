"""The sweeps of Deep Optimizer States: which way each goes."""

from __future__ import annotations

from itertools import islice

import pytest

from clustersim.library.job import load_job
from clustersim.study.interleaved_updates import SWEEPS, Row, sweep_rows, table_of
from clustersim.study.offload_stride import balanced_stride, update_rates
from clustersim.study.point import prepare
from clustersim.study.reproduce.runs import Runs
from clustersim.workload.offload import DeepOptimizerStates

RUNS = Runs()


def some(sweep: str, settings: int) -> list[Row]:
    """The first settings of a sweep."""
    return list(islice(sweep_rows(sweep, RUNS), settings))


def test_every_second_is_best_on_h100_by_search_and_by_rates() -> None:
    """The paper's own runs have a stride of 2."""
    updates = {int(row.setting): row.update["interleaved"] for row in some("stride, 20B", 3)}
    assert min(updates, key=lambda stride: updates[stride]) == 2
    topology = prepare(load_job("deep-optimizer-states-20b")).topology
    assert balanced_stride(update_rates(topology, DeepOptimizerStates())) == 2


def test_longer_passes_leave_less_to_gain() -> None:
    gains = [row.gain("ZeRO-3") or 0 for row in some("micro-batch, 20B", 4)]
    assert gains == sorted(gains, reverse=True)
    updates = {round(row.update["interleaved"], 6) for row in some("micro-batch, 20B", 4)}
    assert len(updates) == 1


def test_larger_subgroups_overlap_less() -> None:
    small, larger, *_ = some("subgroup, 7B", 3)
    assert small.update["interleaved"] < larger.update["interleaved"]
    assert small.update["ZeRO-3"] == pytest.approx(larger.update["ZeRO-3"], rel=0.01)


def test_what_others_take_of_the_memory_costs_both() -> None:
    alone, beside = (dict(row.update) for row in some("memory taken by others, 20B", 2))
    assert all(beside[way] > alone[way] for way in alone)


def test_replicas_share_the_update() -> None:
    one, two = some("replicas, 7B", 2)
    assert one.update["ZeRO-3"] / two.update["ZeRO-3"] == pytest.approx(2, rel=0.02)


def test_what_does_not_fit_has_no_gain() -> None:
    row = Row(setting="x", step={"ZeRO-3": 2.0}, update={"ZeRO-3": 1.0})
    assert row.gain("ZeRO-3") is None
    assert "| x | 2.00 (1.00) | does not fit | does not fit | - | - |" in table_of("sweep", [row])


def test_sweeps_of_the_paper() -> None:
    assert [len(points) for points in SWEEPS.values()] == [5, 5, 5, 5, 4, 5, 3, 3, 6]
