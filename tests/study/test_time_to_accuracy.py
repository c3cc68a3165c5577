"""Hours are step time times steps; the condition for a hybrid says exactly when its hours are fewer."""

from __future__ import annotations

import math

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.study.time_to_accuracy import TimeToAccuracy, time_to_accuracy
from clustersim.topology.topology import Topology
from clustersim.workload.convergence import Convergence
from clustersim.workload.graph import Estimate, Graph, GraphOp, graph_step
from clustersim.workload.job import Job

BATCH = 8
NET = Graph(
    name="net",
    ops=(
        GraphOp(name="stem", seconds=1e-4, out_nbytes=1e5, parameters=1_000_000),
        *(
            GraphOp(name=side, seconds=4e-4, out_nbytes=1e5, after=("stem",), parameters=2_000_000)
            for side in ("left", "right")
        ),
        GraphOp(name="join", seconds=1e-4, after=("left", "right")),
    ),
)


@pytest.fixture(scope="module")
def dgx1() -> Topology:
    return cs.load_topology("dgx1-v100")


def step_of(width: int, replicas: int) -> Job:
    return graph_step(
        NET, batch=BATCH, devices=width, replicas=replicas, placement="list", estimate=Estimate(bandwidth=2e10)
    )


def studied(dgx1: Topology, *epochs: float) -> TimeToAccuracy:
    convergence = Convergence(samples=80_000, batches=(8, 16, 32, 64)[: len(epochs)], epochs=epochs)
    return time_to_accuracy(dgx1, step_of, widths=(2,), num_devices=(1, 2, 4, 8), convergence=convergence)


@pytest.mark.parametrize("epochs", [(4, 4, 4, 4), (4, 4, 6, 20), (4, 9, 30, 100)])
def test_the_condition_says_who_wins(dgx1: Topology, epochs: tuple[float, ...]) -> None:
    result = studied(dgx1, *epochs)
    hybrids = [row for row in result.rows if row.width == 2]
    assert [row.num_devices for row in hybrids] == [2, 4, 8]
    by_devices = {row.num_devices: row for row in result.rows if row.width == 1}
    for row in result.rows:
        assert row.global_batch == BATCH * row.replicas
        assert row.hours == pytest.approx(row.step_time_s * 80_000 / row.global_batch * row.epochs / 3600)
    for row in hybrids:
        base = by_devices[row.num_devices]
        assert (row.hours < base.hours) == (row.speedup > 1) == (row.model_parallel_speedup > row.needed_speedup)
        assert (row.speedup > 1) == (base.epochs / row.epochs > row.needed_epochs_ratio)
        single = by_devices[1].step_time_s
        assert base.scaling_efficiency == pytest.approx(single / base.step_time_s)
        assert 1 < row.model_parallel_speedup < 2


def test_a_steep_table_makes_the_hybrid_win_and_a_flat_one_does_not(dgx1: Topology) -> None:
    flat, late, steep = (studied(dgx1, *e) for e in ((4, 4, 4, 4), (4, 4, 4, 20), (4, 9, 30, 100)))
    assert flat.crossover(2) is None
    assert late.crossover(2) == 8
    assert steep.crossover(2) == 2
    assert (flat.best(8).width, late.best(8).width, late.best(4).width) == (1, 2, 1)
    assert "width 2 beats width 1 from 8 devices on" in str(late)
    assert "nowhere" in str(flat)
    assert len(late.table) == 7


def test_beyond_the_table_of_epochs_it_is_told(dgx1: Topology) -> None:
    result = studied(dgx1, 4, 5, 6)
    row = next(row for row in result.rows if (row.num_devices, row.width) == (8, 1))
    assert math.isnan(row.hours)
    assert "64" in row.note
    hybrid = next(row for row in result.rows if (row.num_devices, row.width) == (8, 2))
    assert math.isfinite(hybrid.hours)
    assert math.isnan(hybrid.speedup)
    assert "64" in hybrid.note
    assert math.isfinite(hybrid.needed_epochs_ratio)
    assert result.best(8) is hybrid
    with pytest.raises(BadInput):
        result.best(3)


def test_numbers_that_are_not_legal(dgx1: Topology) -> None:
    convergence = Convergence(samples=1, batches=(8,), epochs=(1,))
    with pytest.raises(BadInput) as caught:
        time_to_accuracy(dgx1, step_of, widths=(), num_devices=(0, 9), convergence=convergence)
    assert [(f.key, f.nearest) for f in caught.value.faults] == [("num_devices", 1), ("num_devices", 8), ("widths", 1)]
