"""Hybrid against pure data parallelism at 256 V100, after Pal et al., IEEE Micro 2019.

The paper: on DGX-1 nodes hybrid training ends at least 26.5 % (Inception-V3), 8 % (GNMT) and 22 % (BigLSTM) sooner at
scale. It measured how many epochs each global batch needs; the tables of the cards here are assumed. So the condition
for hybrid to win is checked, and what it asks of the epochs, not the paper's percentages. In the tables of this
library the time steps of recurrent layers on two devices overlap as a wavefront.
"""

from __future__ import annotations

from functools import cache

import pytest

import clustersim as cs
from clustersim.study.messages import estimate_of
from clustersim.study.time_to_accuracy import Row, TimeToAccuracy, time_to_accuracy
from clustersim.workload.job import Job

PAIRS = [0, 3, 1, 2, 4, 7, 5, 6]
"""GPUs of a node so that those of a worker share two NVLinks."""

BATCH = {"inception-v3": 64, "gnmt": 128, "big-lstm": 128}


@cache
def studied(name: str) -> TimeToAccuracy:
    cluster = cs.load_topology("dgx1-v100", nodes=32)
    graph = cs.load_graph(name)
    estimate = estimate_of(cluster, devices=PAIRS[:2])

    def step_of(width: int, replicas: int) -> Job:
        placement = "list" if width > 1 else "column"
        return cs.graph_step(
            graph,
            batch=BATCH[name],
            devices=width,
            replicas=replicas,
            placement=placement,
            estimate=estimate,
            device_of_rank=[8 * (r // 8) + PAIRS[r % 8] for r in range(width * replicas)],
        )

    return time_to_accuracy(cluster, step_of, widths=(2,), num_devices=(8, 256), convergence=cs.load_convergence(name))


def row(name: str, num_devices: int, width: int) -> Row:
    return next(r for r in studied(name).rows if (r.num_devices, r.width) == (num_devices, width))


@pytest.mark.parametrize("name", BATCH)
def test_two_devices_are_faster_than_one_and_less_than_twice(name: str) -> None:
    assert 1 < row(name, 8, 2).model_parallel_speedup < 2


@pytest.mark.parametrize("name", BATCH)
def test_on_one_node_data_parallelism_wins(name: str) -> None:
    assert row(name, 8, 2).speedup < 1


@pytest.mark.parametrize("name", ["gnmt", "big-lstm"])
def test_at_scale_the_recurrent_models_train_sooner_as_hybrids(name: str) -> None:
    assert row(name, 256, 2).speedup > 1


@pytest.mark.parametrize("name", BATCH)
def test_the_hybrid_gains_on_data_parallelism_as_batches_grow(name: str) -> None:
    assert row(name, 256, 2).speedup > row(name, 8, 2).speedup


def test_inception_would_need_epochs_that_its_assumed_table_does_not_give() -> None:
    hybrid, pure = row("inception-v3", 256, 2), row("inception-v3", 256, 1)
    assert pure.epochs / hybrid.epochs < hybrid.needed_epochs_ratio < 2
    assert hybrid.speedup < 1
