"""What a user should know before a plan is taken to a framework, and what each micro-batch moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.units import parse
from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.rules import find_faults
from clustersim.workload.rules.frameworks import framework_notes
from clustersim.workload.shape.experts import Experts
from clustersim.workload.training_step import training_step

BATCH: dict[str, Any] = {"global_batch": 64, "micro_batch": 2, "seq_len": 128, "dtype": "bf16"}


def notes(model: Model, plan: dict[str, Any], **batch: Any) -> list[str]:
    case = Case(model=model, plan=ParallelPlan(**plan), **(BATCH | batch))
    assert find_faults(case) == ()
    return list(framework_notes(case))


@pytest.mark.parametrize(
    ("plan", "batch", "words"),
    [
        ({"dp": 2, "pp": 2, "zero": 2}, {}, "DeepSpeed refuses 2"),
        ({"dp": 2, "pp": 2, "zero": 3}, {}, "DeepSpeed refuses 3"),
        ({"dp": 2, "pp": 2, "fsdp": True}, {}, "Megatron-LM refuses torch's FSDP2"),
        ({"dp": 2, "fsdp": True}, {"dtype": "fp16"}, "Megatron-LM refuses torch's FSDP2"),
        ({"dp": 2, "zero": 1, "optimizer": "muon"}, {}, "Megatron-LM refuses muon"),
    ],
)
def test_what_a_framework_refuses_is_told(
    llama: Model, plan: dict[str, Any], batch: dict[str, Any], words: str
) -> None:
    assert any(words in note for note in notes(llama, plan, **batch))


@pytest.mark.parametrize(
    "plan",
    [{"dp": 2, "pp": 2, "zero": 1}, {"dp": 2, "zero": 3}, {"dp": 2, "fsdp": True}, {"dp": 1, "pp": 2, "zero": 3}],
)
def test_what_all_of_them_run_is_not(llama: Model, plan: dict[str, Any]) -> None:
    assert notes(llama, plan) == []


@pytest.mark.parametrize("ep", [None, 1, 2, 4])
def test_the_traffic_of_gathered_weights(llama: Model, sent: Callable[..., int], ep: int | None) -> None:
    """The note's bytes are those of the program: all-gathers of a rank, less its own share."""
    model = replace(llama, vocab=llama.hidden)  # embedding and head are small
    plan: dict[str, Any] = {"dp": 4, "pp": 2, "fsdp": True}
    if ep is not None:
        model = replace(model, experts=Experts(num_experts=8, top_k=2, ffn_hidden=llama.ffn_hidden))
        plan["ep"] = ep
    holders = 4 // (ep or 1)
    (note,) = (text for text in notes(model, plan) if "receives" in text)
    told = parse(note.partition("receives about ")[2], "B")
    job = training_step(model, ParallelPlan(**plan), **BATCH)

    def received(program: Program) -> float:
        experts = sent(program, kind="all_gather", slot="edp") * (holders - 1) / holders
        return experts + sent(program, kind="all_gather", slot="dp") * 3 / 4

    mean = sum(received(program) for program in job.programs) / 2
    assert told == pytest.approx(mean, rel=0.02)
