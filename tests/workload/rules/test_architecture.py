"""What a model's kind leaves without effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.library.model import load_model
from clustersim.workload.case import Case
from clustersim.workload.rules.architecture import architecture_notes


def notes(name: str, **plan: Any) -> list[str]:
    model = load_model(name)
    whole = cs.ParallelPlan(dp=1, **plan)
    case = Case(model=model, plan=whole, global_batch=4, micro_batch=1, seq_len=512, dtype="bf16")
    return list(architecture_notes(case))


@pytest.mark.parametrize(
    ("name", "lacks"),
    [
        ("llama-3-8b", {"mla_up", "experts"}),
        ("mixtral-8x7b", {"mla_up"}),
        ("deepseek-v2-lite", set()),
        ("mamba2-2.7b", {"core", "activation", "mla_up", "experts"}),
        ("nemotron-h-8b", {"mla_up", "experts"}),
    ],
)
def test_parts_that_a_model_lacks(name: str, lacks: set[str]) -> None:
    modules = ("core", "norm", "activation", "mla_up", "experts")
    told = notes(name, recompute="selective", recompute_modules=modules)
    assert {part for part in modules if any(f": {part} has no effect" in note for note in told)} == lacks
    assert notes(name, recompute="full", recompute_modules=modules) == []


def test_muon_does_with_adapters_what_adamw_does() -> None:
    model = load_model("gpt3-175b-lora")
    model = replace(model, num_layers=2, vocab=1024)
    cluster = cs.load_topology("dgx-h100", nodes=1)

    def step(optimizer: str) -> tuple[Any, tuple[str, ...]]:
        plan = cs.ParallelPlan(dp=2, optimizer=optimizer)
        job = cs.training_step(model, plan, global_batch=2, micro_batch=1, seq_len=512)
        answer = cs.summary(cs.simulate(cluster, job))
        return (answer["step_times_s"], answer["peak_memory_bytes"]), job.notes

    muon, adamw = step("muon"), step("adamw")
    assert muon[0] == adamw[0]
    assert [note for note in muon[1] if note not in adamw[1]] == notes("gpt3-175b-lora", optimizer="muon")
    assert notes("llama-3-8b", optimizer="muon") == []
