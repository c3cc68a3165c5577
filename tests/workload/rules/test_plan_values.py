"""No value of any field of a plan ends in anything but a job or faults that name it."""

from __future__ import annotations

from dataclasses import Field, fields, replace
from typing import Any

import numpy as np
import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.experts import Experts

BATCH: dict[str, Any] = {"global_batch": 8, "micro_batch": 1, "seq_len": 64}
NONSENSE: tuple[Any, ...] = ("x", -1, 2.5, [3], {"a": 1}, b"x", object(), float("nan"))

OTHERS: tuple[dict[str, Any], ...] = ({"dp": 4}, {"dp": 4, "tp": 2, "ep": 2, "fsdp": True, "recompute": "full"})


@pytest.fixture
def moe(llama: Model) -> Model:
    return replace(llama, name="moe", ffn_hidden=0, experts=Experts(num_experts=4, top_k=2, ffn_hidden=64))


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("field", fields(ParallelPlan), ids=lambda field: field.name)
def test_nonsense_is_refused_by_name(moe: Model, field: Field[Any], value: Any) -> None:
    """Also beside settings whose rules read it: how experts are split, how weights are."""
    if field.name == "capacity_factor" and value == 2.5:
        return
    for others in OTHERS:
        with pytest.raises(BadInput) as caught:
            cs.training_step(moe, ParallelPlan(**others | {field.name: value}), **BATCH)
        assert any(fault.key.startswith(f"plan.{field.name}") for fault in caught.value.faults)
        told = [(fault.key, str(fault.value), fault.rule) for fault in caught.value.faults]
        assert len(told) == len(set(told))


@pytest.mark.parametrize("key", ["tp", "etp"])
def test_degrees_beyond_measure_are_refused_at_once(moe: Model, key: str) -> None:
    beyond: dict[str, Any] = {key: 10**30}
    with pytest.raises(BadInput):
        cs.training_step(moe, ParallelPlan(dp=4, **beyond), **BATCH)


def test_the_nearest_of_a_whole_number_of_numpy_is_itself(moe: Model) -> None:
    with pytest.raises(BadInput) as caught:
        cs.training_step(moe, ParallelPlan(dp=1, tp=np.int64(2)), **BATCH)  # type: ignore[arg-type]
    assert [(fault.key, fault.nearest) for fault in caught.value.faults] == [("plan.tp", 2)]
