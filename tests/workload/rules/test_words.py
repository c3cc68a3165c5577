"""Values of a type that a setting does not take."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults


@pytest.mark.parametrize(
    ("plan", "nearest"),
    [
        ({"zero": float("nan")}, 0),
        ({"zero": float("inf")}, 3),
        ({"zero": -(10**30)}, 0),
        ({"zeropp": "qgz", "zero": 3}, ["qgz"]),
        ({"zeropp": None}, ["qwz"]),
        ({"recompute_modules": 1.5}, ["core"]),
        ({"recompute_modules": "norm"}, ["norm"]),
        ({"optimizer": []}, "adam"),
        ({"optimizer": 1.5}, "adam"),
    ],
)
def test_one_fault_and_what_to_write_instead(llama: Model, plan: dict[str, Any], nearest: object) -> None:
    batch: dict[str, Any] = {"global_batch": 64, "micro_batch": 1, "seq_len": 128, "dtype": "bf16"}
    (fault,) = find_faults(Case(model=llama, plan=ParallelPlan(dp=8, **plan), **batch))
    assert (fault.key.removeprefix("plan."), fault.nearest) == (next(iter(plan)), nearest)
