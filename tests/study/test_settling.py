"""Runs that are too short to show what saves cost say so."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs
from clustersim.library.job import JobSetup
from clustersim.study.point import run_point


def warned(**values: Any) -> bool:
    setup = JobSetup.of("t", model="gpt2", topology="polaris", global_batch=16, seq_len=128)
    saves = {"plan.zero": 1, "plan.checkpoint.policy": "asynchronous", "plan.checkpoint.tier": "nvme"}
    run = run_point(setup.with_values(saves | {key.replace("__", "."): value for key, value in values.items()}))
    return any(note.startswith("plan.checkpoint") for note in run.warnings)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"steps": 2}, True),
        ({}, False),
        ({"plan__checkpoint__every": 4}, True),
        ({"plan__checkpoint__every": 32}, False),
        ({"plan__checkpoint__every": 32, "steps": 31}, True),
        ({"plan__checkpoint__every": 2, "steps": 1, "plan__checkpoint__policy": "synchronous"}, True),
        ({"plan__checkpoint__policy": "synchronous", "steps": 2}, False),
        ({"plan__checkpoint__pool_bytes": "50 MB"}, False),
        ({"plan__checkpoint__pool_bytes": "5 GB", "steps": 6}, True),
        ({"plan__checkpoint__pool_bytes": "1 GB", "steps": 5}, True),
    ],
)
def test_what_is_still_filling_is_told(values: dict[str, Any], expected: bool) -> None:
    assert warned(**values) == expected


def test_by_default_the_last_step_is_the_steady_one() -> None:
    setup = JobSetup.of("t", model="gpt2", topology="polaris", global_batch=16, seq_len=128)
    setup = setup.with_values({"plan.zero": 1, "plan.checkpoint.policy": "lazy", "plan.checkpoint.tier": "nvme"})
    found = cs.summary(run_point(setup))
    assert found["step_time_s"] == pytest.approx(found["step_times_s"][-1], rel=1e-6)
