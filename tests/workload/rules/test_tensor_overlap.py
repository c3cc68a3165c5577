"""Words on overlapped tensor parallelism: what is refused, what does nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.resolve import resolve
from clustersim.workload.rules import find_faults
from clustersim.workload.rules.tensor_overlap import tensor_overlap_notes
from clustersim.workload.shape.experts import Experts

BATCH: dict[str, Any] = {"global_batch": 64, "micro_batch": 2, "seq_len": 128, "dtype": "bf16"}


def case(model: Model, **plan: Any) -> Case:
    return Case(model=model, plan=ParallelPlan(dp=1, **plan), **BATCH)


@pytest.mark.parametrize(
    ("plan", "key", "nearest", "words"),
    [
        ({"tp_overlap": "rings"}, "plan.tp_overlap", "ring", "must be one of none, ring"),
        ({"tp_overlap": None}, "plan.tp_overlap", "none", "must be one of"),
        ({"tp_overlap_chunks": 0}, "plan.tp_overlap_chunks", 1, "whole number from 1"),
        ({"tp_overlap": "ring", "sequence_parallel": False}, "plan.tp_overlap", "none", "plan.sequence_parallel"),
        ({"tp_overlap": "pipeline", "tp_overlap_chunks": 65}, "plan.tp_overlap_chunks", 64, "64 tokens of a rank"),
    ],
)
def test_refused(llama: Model, plan: dict[str, Any], key: str, nearest: Any, words: str) -> None:
    (fault,) = find_faults(case(llama, tp=4, **plan))
    assert (fault.key, fault.nearest) == (key, nearest)
    assert words in fault.rule
    again = plan | {key.removeprefix("plan."): nearest}
    assert find_faults(case(llama, tp=4, **again)) == ()


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"tp": 1, "tp_overlap": "ring"}, "plan.tp_overlap: no effect with tp 1"),
        ({"tp": 4, "tp_overlap": "ring", "tp_overlap_chunks": 8}, "plan.tp_overlap_chunks: no effect"),
        ({"tp": 4, "tp_overlap_chunks": 8}, "plan.tp_overlap_chunks: no effect"),
    ],
)
def test_without_effect(llama: Model, plan: dict[str, Any], words: str) -> None:
    assert any(note.startswith(words) for note in resolve(case(llama, **plan)).notes)


def test_sublayers_that_stay_whole_are_named(llama: Model) -> None:
    experts = Experts(num_experts=4, top_k=2, ffn_hidden=64)
    plan = {"tp": 2, "tp_overlap": "ring"}
    (note,) = tensor_overlap_notes(case(replace(llama, experts=experts), **plan))
    assert note == "plan.tp_overlap: the collectives of experts stay whole"
    assert list(tensor_overlap_notes(case(llama, **plan))) == []
