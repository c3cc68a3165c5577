"""Schedules against the other words of a plan."""

from __future__ import annotations

from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults


def test_copies_on_two_stages_do_not_go_with_inner_groups(llama: Model) -> None:
    plan = ParallelPlan(dp=4, pp=4, schedule="dualpipe", fsdp=True, hsdp=2, tp_overlap="rings", gradient_dtype="fp16")
    held = Case(model=llama, plan=plan, global_batch=64, micro_batch=2, seq_len=128, dtype="bf16")
    rules = {fault.key: fault.rule for fault in find_faults(held)}
    assert "inner groups" in rules["plan.schedule"]
    assert rules.keys() == {"plan.schedule", "plan.tp_overlap", "plan.gradient_dtype"}  # at once with the others
