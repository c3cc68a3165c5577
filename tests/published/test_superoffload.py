"""What SuperOffload gains, and where: signs and orders beside the numbers of test_systems.py."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from clustersim.analysis.summary import summary
from clustersim.library.job import load_job
from clustersim.library.topologies import load_topology
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


def gain(topology: str, sequences: int) -> float:
    """Over ZeRO-Offload, paper against paper, on all GPUs of a node."""
    gpus = load_topology(topology, nodes=1).num_devices
    values = (("topology", topology), ("plan.dp", gpus), ("micro_batch", sequences), ("global_batch", gpus * sequences))
    return seconds("superoffload-5b-baseline", *values) / seconds("superoffload-5b", *values)


def test_each_step_of_the_ablation_gains() -> None:
    settings = dict(BASE)
    found = []
    for step in ({}, *ABLATION):
        settings |= step
        found.append(seconds("superoffload-5b", *((f"plan.offload.{key}", value) for key, value in settings.items())))
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 5


@pytest.mark.parametrize(("sequences", "least"), [(4, 1.5), (8, 1.5), (16, 1.4)])
def test_it_is_for_superchips(sequences: int, least: float) -> None:
    """At 16 sequences the passes are long enough that a GH200 has less to hide.

    DeepSpeed issue 7966: tokens per second close to those of ZeRO-Offload on a machine with PCIe.
    """
    assert gain("gh200", sequences) > least
    assert 1 < gain("dgx-h100", sequences) < 1.2


def test_a_longer_tail_gains_behind_pcie_too() -> None:
    """A third of the state is on the GPU then, and the CPU, which is waited for, has less to update."""
    node = (("topology", "dgx-h100"), ("plan.dp", 8), ("micro_batch", 4), ("global_batch", 32))
    tails = [seconds("superoffload-5b", *node, ("plan.offload.tail", tail)) for tail in (0, 30, 57)]
    assert tails == sorted(tails, reverse=True)
    assert seconds("superoffload-5b-baseline", *node) > 1.2 * tails[-1]


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
