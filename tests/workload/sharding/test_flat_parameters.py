"""One flat parameter a layer: what becomes of its gradients before they are reduced."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.op import Collective, Compute


def copies(model: cs.Model, **plan: Any) -> tuple[list[int], list[int]]:
    """Bytes of the copies of gradients, and payloads of their reductions."""
    job = cs.training_step(
        model,
        cs.ParallelPlan(**({"fsdp": True} | plan)),
        global_batch=8,
        micro_batch=2,
        seq_len=256,
        dtype="bf16",
        num_devices=4,
    )
    arrays = job.programs[0].arrays()
    ops = [arrays.ops[k] for k in arrays.op]
    copied = [op.nbytes for op in ops if isinstance(op, Compute) and op.name == "copy in gradients"]
    return copied, [op.nbytes for op in ops if isinstance(op, Collective) and op.kind == "reduce_scatter"]


@pytest.mark.parametrize(("reduce_dtype", "a_parameter", "width"), [("fp32", 4 + 6 + 8, 4), ("bf16", 4 + 4, 2)])
def test_put_together_cast_and_divided(llama: cs.Model, reduce_dtype: str, a_parameter: int, width: int) -> None:
    copied, reduced = copies(llama, flat_parameters=True, reduce_dtype=reduce_dtype)
    assert len(copied) == len(reduced) == llama.num_layers + 2
    assert sum(copied) == pytest.approx(a_parameter * sum(reduced) / width, rel=1e-3)


def test_what_a_bucket_of_stage_2_holds_is_copied_and_divided_for_each_micro_batch(llama: cs.Model) -> None:
    plan = {"fsdp": False, "zero": 2, "gradient_dtype": "bf16"}
    copied, reduced = copies(llama, flat_parameters=True, **plan)
    assert len(copied) == len(reduced)
    assert sum(copied) == pytest.approx((4 + 4) * sum(reduced) / 2, rel=1e-3)
    assert copies(llama, **plan) == ([], reduced)


def test_nothing_by_default(llama: cs.Model) -> None:
    assert copies(llama)[0] == []


def test_nothing_where_parameters_stay_apart(llama: cs.Model) -> None:
    assert copies(llama, per_parameter=True) == copies(llama, per_parameter=True, flat_parameters=True)
