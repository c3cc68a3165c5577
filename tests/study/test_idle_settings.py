"""Settings that no rule knows are judged by a job that is built without them."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.library.job import JobSetup, load_job
from clustersim.study import idle_settings as module
from clustersim.study.point import run_point

OFFLOAD: dict[str, Any] = {"nodes": 1, "plan.zero": 3, "plan.offload.policy": "deep-optimizer-states"}


def told(setup: JobSetup) -> list[str]:
    sentence = ": no effect: the job is the same without it"
    return [warning.removesuffix(sentence) for warning in run_point(setup).warnings if warning.endswith(sentence)]


@pytest.mark.parametrize(
    ("key", "value", "others"),
    [
        ("plan.update_kernels", "copied", {"plan.pp": 4, "plan.offload.policy": "deep-optimizer-states", "nodes": 1}),
        ("plan.token_imbalance", "zipf:1", {"model": "mixtral-8x7b", "seq_len": 64, "plan.zero": 3}),
    ],
)
def test_told_and_nothing_else(tiny: JobSetup, key: str, value: Any, others: dict[str, Any]) -> None:
    setup = tiny.with_values(others)
    assert told(setup.with_values({key: value})) == [key]
    assert told(setup) == []


@pytest.mark.parametrize(
    "values",
    [
        {"plan.dp": 8, "plan.vpp": 1, "plan.schedule": "1f1b", "plan.gradient_dtype": "fp32", "plan.zero": 0},
        {"plan.reduce_dtype": "fp32", "plan.optimizer": "adamw", "plan.sequence_parallel": False},
        OFFLOAD | {"plan.offload.stride": 2, "plan.offload.adam": "adam"},
        {"profile": "fsdp-2024", "plan.fsdp": True},
    ],
)
def test_what_a_plan_has_anyway_is_not_told(tiny: JobSetup, values: dict[str, Any]) -> None:
    assert told(tiny.with_values(values)) == []


def test_settings_of_a_card_are_its_own() -> None:
    """What a card sets is not what its user asks for."""
    assert told(load_job("llama-3-8b-tp2-dp4")) == []


def test_a_large_job_is_not_built_again(tiny: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup = tiny.with_values(OFFLOAD | {"plan.update_kernels": "copied", "plan.pp": 4})
    monkeypatch.setattr(module, "MOST_OPS", 10)
    assert told(setup) == []
