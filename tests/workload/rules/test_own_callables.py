"""A user's own callables that take or return something else are told what they should."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.workload.model import Model
from clustersim.workload.shape.experts import Experts

BATCH: dict[str, Any] = {"global_batch": 8, "micro_batch": 1, "seq_len": 128}


def one(a: int) -> int:
    return 3


def three(a: int, b: int, c: int) -> Any:
    return [["F0"]]


def none() -> int:
    return 3


@pytest.mark.parametrize(
    ("plan", "key", "rule"),
    [
        ({"sharding": one}, "plan.sharding", "must return a clustersim.workload.sharding.Sharding"),
        ({"sharding": none}, "plan.sharding", "must take 1 arguments"),
        ({"schedule": three}, "plan.schedule", "must return for each stage a sequence of Unit and Overlapped"),
        ({"schedule": lambda p, v, m: 3}, "plan.schedule", "must return for each stage"),
        ({"schedule": one}, "plan.schedule", "must take 3 arguments"),
    ],
)
def test_schedules_and_shardings(llama: Model, plan: dict[str, Any], key: str, rule: str) -> None:
    with pytest.raises(BadInput) as caught:
        cs.training_step(llama, cs.ParallelPlan(dp=2, **plan), **BATCH)
    (fault,) = caught.value.faults
    assert fault.key == key
    assert fault.rule.startswith(rule)


@pytest.mark.parametrize("experts", [{"ep": 0}, {"ep": "two"}, {"etp": "two"}], ids=str)
def test_a_strategy_waits_for_degrees_that_are_legal(llama: Model, experts: dict[str, Any]) -> None:
    """Which ranks hold the same experts is not known before."""
    moe = replace(llama, ffn_hidden=0, experts=Experts(num_experts=4, top_k=2, ffn_hidden=64))
    with pytest.raises(BadInput) as caught:
        cs.training_step(moe, cs.ParallelPlan(dp=2, sharding=one, **experts), **BATCH)
    assert {fault.key for fault in caught.value.faults} == {f"plan.{name}" for name in experts}


@pytest.mark.parametrize(
    ("placement", "rule"), [(one, "must take 2 arguments"), (lambda g, m: 3, "must return a device for each op")]
)
def test_placements(placement: Callable[..., Any], rule: str) -> None:
    graph = cs.load_graph("gnmt")
    with pytest.raises(BadInput) as caught:
        cs.graph_step(graph, batch=8, devices=2, placement=placement)
    (fault,) = caught.value.faults
    assert fault.key == "placement"
    assert fault.rule.startswith(rule)
