"""Copies around the collectives of sequence parallelism where sequences are outermost."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.op import Collective, Compute


def ops(model: cs.Model, **plan: Any) -> list[Compute | Collective]:
    job = cs.training_step(
        model, cs.ParallelPlan(tp=2, **plan), global_batch=2, micro_batch=2, seq_len=256, dtype="bf16", num_devices=2
    )
    arrays = job.programs[0].arrays()
    return [op for k in arrays.op for op in [arrays.ops[k]] if isinstance(op, Compute | Collective)]


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_one_for_each_gathering_and_each_reduction(llama: cs.Model, recompute: str) -> None:
    found = ops(llama, batch_first=True, recompute=recompute)
    moved = [op for op in found if isinstance(op, Collective) and op.kind in ("all_gather", "reduce_scatter")]
    copies = [op for op in found if isinstance(op, Compute) and op.kind == "copy"]
    full = 2 * 2 * 256 * llama.hidden
    assert len(moved) > 8 * llama.num_layers - 1
    assert len(copies) == len(moved)
    assert {op.nbytes for op in copies} == {2 * full}


def test_none_where_the_sequence_is_outermost(llama: cs.Model) -> None:
    assert not [op for op in ops(llama) if op.kind == "copy"]


def test_none_where_tokens_go_in_parts(llama: cs.Model) -> None:
    whole = [op.name for op in ops(llama, batch_first=True) if op.kind == "copy"]
    parts = [op.name for op in ops(llama, batch_first=True, tp_overlap="ring") if op.kind == "copy"]
    assert len(parts) < len(whole)
