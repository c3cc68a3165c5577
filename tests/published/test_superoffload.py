"""What SuperOffload gains, and where: signs and orders beside the numbers of test_systems.py."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from clustersim.analysis.summary import summary
from clustersim.library.job import load_job
from clustersim.study.offload_tail import smallest_tail, tail_rates
from clustersim.study.point import run_point

ABLATION: tuple[dict[str, Any], ...] = (
    {"adam": "adam_tuned"},
    {"cast": "gpu"},
    {"speculates": True, "validates": True, "overlaps_forward": True},
    {"subgroup_size": 16 * 2**20, "tail": 30},
)
BASE: dict[str, Any] = {
    "adam": "adam",
    "cast": "cpu",
    "speculates": False,
    "validates": False,
    "overlaps_forward": False,
    "subgroup_size": 128 * 2**20,
    "tail": 0,
}


@cache
def seconds(job: str, *values: tuple[str, Any]) -> float:
    """A step in the steady state [s]."""
    return float(summary(run_point(load_job(job).with_values({"steps": 3, **dict(values)})))["step_time_s"])


def gain(*values: tuple[str, Any], tail: int) -> float:
    """Over ZeRO-Offload, paper against paper."""
    before = seconds("superoffload-5b-baseline", *values)
    return before / seconds("superoffload-5b", *values, ("plan.offload.tail", tail))


def eight(topology: str, sequences: int) -> tuple[tuple[str, Any], ...]:
    """Eight GPUs that share the state, with so many sequences each."""
    batch = (("micro_batch", sequences), ("global_batch", 8 * sequences))
    return (("topology", topology), ("plan.dp", 8), ("plan.zero", 2), *batch)


def test_each_step_of_the_ablation_gains() -> None:
    settings = dict(BASE)
    found = []
    for step in ({}, *ABLATION):
        settings |= step
        found.append(seconds("superoffload-5b", *((f"plan.offload.{key}", value) for key, value in settings.items())))
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 5


@pytest.mark.parametrize(("sequences", "tail", "least"), [(4, 57, 1.5), (8, 30, 1.5), (16, 5, 1.4)])
def test_a_superchip_gains(sequences: int, tail: int, least: float) -> None:
    """At 16 sequences the passes are long enough that there is less to hide."""
    assert gain(("micro_batch", sequences), ("global_batch", sequences), tail=tail) > least


def test_a_superchip_gains_more_over_what_runs_as_zero_offload() -> None:
    """DeepSpeed's code updates, casts and copies in turn, which long passes hide no better."""
    batch = (("micro_batch", 16), ("global_batch", 16))
    code = seconds("superoffload-5b-baseline", *batch, ("plan.offload.policy", "zero-2-offload"))
    assert 1.5 < code / seconds("superoffload-5b", *batch, ("plan.offload.tail", 5)) < 2


@pytest.mark.parametrize("topology", ["hgx-h20", "dgx-h100"])
def test_what_is_shipped_gains_nothing_behind_pcie(topology: str) -> None:
    """DeepSpeed issue 7966, on its machine and on one with short passes: code against code."""
    values = (("topology", topology), ("plan.dp", 8), ("plan.zero", 3), ("micro_batch", 1), ("global_batch", 8))
    assert seconds("zero-offload-qwen3-14b", *values) < 1.2 * seconds("superoffload-qwen3-14b", *values)


@pytest.mark.parametrize("sequences", [8, 16])
@pytest.mark.parametrize("tail", [0, 5])
def test_eight_h20_gain_little(sequences: int, tail: int) -> None:
    """DeepSpeed issue 7966: tokens per second close to those of ZeRO-Offload.

    Five subgroups are a seventh of the state.
    """
    assert 1 < gain(*eight("hgx-h20", sequences), tail=tail) < 1.2


@pytest.mark.xfail(
    strict=True,
    reason="the passes of an H100 are short beside the CPU's update, which is hidden whatever the link; "
    "the issue's machine has H20, and DeepSpeed's release, which hides less",
)
def test_eight_h100_gain_little() -> None:
    assert gain(*eight("dgx-h100", 8), tail=0) < 1.2


@pytest.mark.parametrize(("size", "fits"), [("25b", True), ("30b", False)])
def test_the_host_says_what_fits_a_superchip(size: str, fits: bool) -> None:
    run = summary(run_point(load_job("superoffload-25b").with_values({"model": f"superoffload-{size}"})))
    assert run["fits"] is fits
    assert run["peak_memory_bytes"]["gpu"] < 96e9


def test_the_tail_of_the_job_is_that_of_the_closed_form() -> None:
    setup = load_job("superoffload-5b")
    assert smallest_tail(tail_rates(setup)) == setup.value("plan.offload.tail")


@pytest.mark.parametrize("topology", ["hgx-h20", "dgx-h100"])
def test_as_released_it_gains_little_over_stage_3_behind_pcie(topology: str) -> None:
    """Qwen3-14B on 8 GPUs, as in DeepSpeed issue 7966."""
    values = (("topology", topology), ("plan.dp", 8), ("plan.zero", 3), ("global_batch", 8), ("micro_batch", 1))
    assert 0.8 < seconds("zero-offload-qwen3-14b", *values) / seconds("superoffload-qwen3-14b", *values) < 1.2
