"""What attention in fp8 asks of the recipe and of ranks that share a sequence."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.rules import find_faults


def told(model: Model, dtype: str, **plan: Any) -> dict[str, Fault]:
    plan_ = cs.ParallelPlan(dp=1, **plan)
    case = Case(model=model, plan=plan_, global_batch=4, micro_batch=1, seq_len=128, dtype=dtype)
    return {fault.key: fault for fault in find_faults(case)}


@pytest.mark.parametrize(("dtype", "plan"), [("bf16", {}), ("mxfp8", {"cp": 2})])
def test_attention_in_fp8_needs_a_recipe_that_quantises_and_whole_sequences(
    llama: Model, dtype: str, plan: dict[str, Any]
) -> None:
    found = told(llama, dtype, attention="cudnn-fp8", **plan)
    assert set(found) == {"plan.attention"}
    assert found["plan.attention"].nearest == "cudnn"
    assert not told(llama, dtype, attention="cudnn", **plan)
    assert not told(llama, "mxfp8", attention="cudnn-fp8")
