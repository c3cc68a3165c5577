"""Schedules against the other words of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clustersim.faults import Fault
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


def faults(model: Model, **plan: Any) -> tuple[Fault, ...]:
    given = ParallelPlan(**{"dp": 1} | plan)
    return find_faults(Case(model=model, plan=given, global_batch=64, micro_batch=1, seq_len=128, dtype="bf16"))


@pytest.mark.parametrize(
    ("plan", "nearest"),
    [
        ({"schedule": "zb-v"}, {"plan.schedule": "1f1b"}),
        ({"schedule": "zb-v", "vpp": 1}, {"plan.schedule": "1f1b"}),
        ({"schedule": "dualpipe", "vpp": 2}, {"plan.schedule": "1f1b", "plan.vpp": 1}),
        ({"schedule": "interleaved-zb", "pp": 8, "vpp": 2}, {"plan.pp": 5}),
        ({"schedule": "interleaved", "pp": 4, "vpp": 3}, {"plan.vpp": 2}),
        ({"schedule": "zb-v", "pp": 8}, {"plan.pp": 5}),
        ({"schedule": "v-min", "pp": 3, "vpp": 4}, {"plan.vpp": 2}),
        ({"schedule": "dualpipe", "pp": 12}, {"plan.pp": 10}),
        ({"vpp": 1000}, {"plan.vpp": 1}),
    ],
)
def test_the_nearest_legal_values_are_legal(llama: Model, plan: dict[str, Any], nearest: dict[str, Any]) -> None:
    found = faults(llama, **plan)
    assert {fault.key: fault.nearest for fault in found} == nearest
    after = faults(llama, **plan | {key.removeprefix("plan."): value for key, value in nearest.items()})
    assert not {fault.key for fault in after} & {"plan.schedule", "plan.vpp", "plan.pp"}


def test_both_ways_of_dualpipe_hold_the_whole_model(llama: Model) -> None:
    assert faults(llama, schedule="dualpipe", pp=8) == ()  # 8 layers on 8 stages, each twice


@pytest.mark.parametrize(("pp", "vpp"), [(2, 1), (2, 3)])
def test_a_table_of_other_chunks_is_a_fault(llama: Model, tmp_path: Path, pp: int, vpp: int) -> None:
    table = tmp_path / "vee.csv"
    table.write_text("placement,vee\nF0.0,F0.1,B0.1,B0.0\nF0.0,F0.1,B0.1,B0.0\n")
    (fault,) = faults(llama, schedule=str(table), pp=pp, vpp=vpp)
    assert (fault.key, fault.nearest) == ("plan.vpp", 2)


def test_a_table_that_cannot_be_read_is_told_with_the_rest(llama: Model, tmp_path: Path) -> None:
    table = tmp_path / "own.csv"
    found = faults(llama, schedule=str(table), pp=2, recompute="ful")
    assert [(fault.key, fault.file) for fault in found] == [("plan.recompute", ""), ("schedule", str(table))]
    table.write_text("F0,X0,B0\n")
    found = faults(llama, schedule=str(table), pp=2, recompute="ful")
    assert [fault.key for fault in found] == ["plan.recompute", "stage 0, unit 1"]


@pytest.mark.parametrize("vpp", [0, -1, "two", 1.5, float("nan")])
def test_chunks_that_are_no_number_are_one_fault(llama: Model, vpp: object) -> None:
    assert [fault.key for fault in faults(llama, pp=2, vpp=vpp, schedule="zb-v")] == ["plan.vpp"]
