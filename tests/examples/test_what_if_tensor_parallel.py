"""How far does tensor parallelism reach, and what hides its collectives?

Layers are shared by ranks that exchange activations four times each way, so the links between these ranks decide::

    plan = cs.ParallelPlan(tp=16)                            # over two nodes of eight
    plan = cs.ParallelPlan(tp=8, tp_overlap="userbuffers")   # products take and give tokens in parts

The same on the command line: ``clustersim run llama-2-7b-tp8-dp2 --set plan.tp_overlap=userbuffers``. Below, 16 GPUs
train 8 billion parameters, and 32 train 70 billion.
"""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs

Summary = dict[str, Any]


def train(model: str, nodes: int, seq_len: int, overlap: dict[str, float] | None = None, **plan: Any) -> Summary:
    given = cs.ParallelPlan(**plan)
    step = cs.training_step(
        cs.load_model(model), given, num_devices=8 * nodes, global_batch=8, micro_batch=1, seq_len=seq_len
    )
    return dict(cs.summary(cs.simulate(cs.load_topology("dgx-h100", nodes=nodes), step, overlap=overlap)))


def exposed(run: Summary) -> float:
    return float(run["breakdown_s"]["exposed_comm"]["tp"])


@pytest.fixture(scope="module")
def runs() -> tuple[Summary, Summary]:
    """Two replicas on a node each, and one over both."""
    inside = train("llama-3-8b", 2, 4096, tp=8, dp=2)
    return inside, train("llama-3-8b", 2, 4096, tp=16, dp=1)


@pytest.fixture(scope="module")
def large() -> dict[str, Summary]:
    words = ("none", "ring", "userbuffers")
    return {word: train("llama-3-70b", 4, 8192, tp=8, pp=4, tp_overlap=word) for word in words}


class TestAcrossNodes:
    def test_it_runs_and_hurts(self, runs: tuple[Summary, Summary]) -> None:
        inside, across = runs
        assert across["step_time_s"] > 1.3 * inside["step_time_s"]
        assert across["mfu"] < 0.8 * inside["mfu"]

    def test_because_activations_cross_the_network(self, runs: tuple[Summary, Summary]) -> None:
        """Sixteen ranks do as much work as eight, twice: of a step over both nodes, more than half is exchange."""
        inside, across = runs
        assert exposed(across) > 2.5 * exposed(inside)
        assert exposed(across) > 0.5 * across["step_time_s"]
        assert across["breakdown_s"]["compute"] > inside["breakdown_s"]["compute"]  # narrow products are slow ones

    def test_where_replicas_meet_the_network_it_is_once_a_step(self, runs: tuple[Summary, Summary]) -> None:
        inside, across = runs
        assert inside["breakdown_s"]["exposed_comm"]["dp"] > 0
        assert across["breakdown_s"]["exposed_comm"]["dp"] == 0
        assert inside["breakdown_s"]["exposed_comm"]["dp"] < exposed(across) / 4


class TestOverlap:
    def test_a_wide_model_gains(self, large: dict[str, Summary]) -> None:
        assert large["ring"]["step_time_s"] < 0.96 * large["none"]["step_time_s"]
        assert large["userbuffers"]["step_time_s"] < 0.96 * large["none"]["step_time_s"]

    def test_parts_of_products_are_slower_and_hide_more_than_that(self, large: dict[str, Summary]) -> None:
        none, ring = large["none"], large["ring"]
        lost = ring["breakdown_s"]["compute"] - none["breakdown_s"]["compute"]
        assert 0 < lost < exposed(none) - exposed(ring)

    def test_a_narrow_model_loses(self) -> None:
        """Products of 2,048 tokens with an eighth of 8 billion parameters are too small to be cut in eight."""
        none, ring = (train("llama-3-8b", 1, 2048, tp=8, tp_overlap=word) for word in ("none", "ring"))
        assert exposed(ring) < exposed(none)
        assert ring["step_time_s"] > none["step_time_s"]

    def test_the_memory_is_that_of_whole_products(self, large: dict[str, Summary]) -> None:
        assert large["ring"]["peak_memory_bytes"] == large["none"]["peak_memory_bytes"]

    def test_exchanges_take_sms_and_memory_bandwidth_from_products(self) -> None:
        """What is hidden is not free: where collectives take nothing from kernels beside them, a step is shorter."""
        real, free = (
            train("llama-3-8b", 1, 4096, overlap=factors, tp=8, tp_overlap="ring")
            for factors in (None, {"sm": 0, "hbm": 0})
        )
        assert free["breakdown_s"]["compute"] < real["breakdown_s"]["compute"]
        assert free["step_time_s"] < real["step_time_s"]
