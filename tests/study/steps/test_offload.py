"""The words of a row on offloading become a policy, or the name of what is not built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.metric import in_metric, metric_faults
from clustersim.study.steps.offload import offload_of
from clustersim.study.steps.refusal import REASONS, RefusedError
from clustersim.study.steps.step_job import place
from clustersim.study.steps.timing import step_time
from clustersim.workload.offload import TwinFlow, Zero2Offload, Zero3Offload, ZeroInfinity

LLAMA = StepRow(
    line=2,
    source="somebody's table of DeepSpeed settings",
    year=2025,
    hardware="A100-SXM4-80GB",
    nodes=1,
    gpus=8,
    model="small",
    layers=4,
    hidden=1024,
    heads=8,
    ffn=2816,
    gated_mlp=1,
    vocab=32000,
    seq_len=512,
    tp=1,
    pp=1,
    zero_stage=2,
    micro_batch=1,
    global_batch=8,
    recompute="full",
    precision="bf16",
    offload="optimizer CPU",
    metric="iteration_time",
    value=1.0,
    unit="s",
)


def policy(**changes: Any) -> Any:
    return offload_of(replace(LLAMA, **changes))[0]["offload"]


def test_nothing_is_offloaded() -> None:
    assert offload_of(replace(LLAMA, offload="")) == ({}, [])
    assert offload_of(replace(LLAMA, offload="none")) == ({}, [])


def test_releases_of_stage_2() -> None:
    old, middle, new = (policy(year=year) for year in (2021, 2024, 2025))
    assert all(type(found) is Zero2Offload for found in (old, middle, new))
    assert [found.temporaries for found in (old, middle, new)] == [True, False, False]
    assert [found.cast_weights for found in (old, middle, new)] == ["cpu", "gpu", "cpu"]


def test_micro_batches_that_are_added_up_go_by_the_host() -> None:
    assert not policy().flat_buffer
    assert policy(grad_accum=4).flat_buffer


def test_stage_3_with_and_without_its_weights() -> None:
    own, whole = policy(zero_stage=3), policy(zero_stage=3, offload="parameters+gradients+optimizer to CPU")
    assert (type(own), own.weights, whole.weights) == (Zero3Offload, "gpu", "host")
    assert (policy(zero_stage=3, year=2023).cast, own.cast) == ("cpu", "gpu")


def test_pinned_and_bound_only_where_the_source_says_so() -> None:
    assert (policy().pinned, policy().binding) == (False, "none")
    said = policy(source="DeepSpeed ZenFlow core binding blog", id="zo-bound")
    assert (said.pinned, said.binding) == (True, "numa")
    assert policy(id="zo-unbound").binding == "none"


def test_drives_under_the_models_that_a_figure_names() -> None:
    words: dict[str, Any] = {"zero_stage": 3, "offload": "CPU + NVMe (5T and above)"}
    small, large = policy(model="GPT 1T", **words), policy(model="GPT 10T", **words)
    assert (type(small), small.weights) == (Zero3Offload, "host")
    assert (type(large), large.weights) == (ZeroInfinity, "nvme")


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"offload": "optimizer CPU (ZenFlow, async)"}, "ZenFlow"),
        ({"offload": "optimizer CPU (adaptive partial)", "zero_stage": 3}, "DeepCompile"),
        ({"offload": "by magic"}, "by magic"),
        ({"zero_stage": 0}, "stage 0"),
    ],
)
def test_what_is_not_built_is_refused_by_name(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(RefusedError, match=name) as refused:
        policy(**changes)
    assert refused.value.reason == REASONS["offload"]


def test_the_policy_is_in_the_plan_and_told() -> None:
    step = place(LLAMA)
    assert type(step.job.plan.offload) is Zero2Offload
    assert any(text.startswith("offload: zero-2-offload as of 2025") for text in step.assumptions)


def test_a_ratio_to_the_step_without_offloading() -> None:
    """A fraction of the optimizer on the host, as Megatron-Core has it: slower the more."""
    changes: dict[str, Any] = {
        "metric": "step_time_ratio_vs_no_offload",
        "unit": "x",
        "zero_stage": 1,
        "hidden": 4096,
        "ffn": 11008,
        "heads": 32,
    }
    ratios = []
    for fraction in ("0.0", "0.5", "1.0"):
        measured = place(replace(LLAMA, offload=f"optimizer CPU offload fraction {fraction}", **changes))
        assert type(measured.job.plan.offload) is TwinFlow
        metric_faults(measured.row)
        ratios.append(in_metric(measured, step_time(measured.job)))
    assert ratios[0] < ratios[1] < ratios[2]
    assert ratios[0] < 1 < ratios[1]  # updated part by part, what is on the GPUs is gathered beside the rest
    with pytest.raises(RefusedError):
        metric_faults(replace(measured.row, unit="s"))


@pytest.mark.parametrize(
    ("hardware", "card"),
    [
        ("A100-SXM4-40GB (2 GPUs of a DGX A100, 2x EPYC 7742)", "dgx-a100-40gb-2gpu"),
        ("A800-SXM4-80GB (8 GPU, 2x Xeon 8358, 1 TB)", "hgx-a800"),
    ],
)
def test_hosts_of_published_machines(hardware: str, card: str) -> None:
    gpus = 2 if "2gpu" in card else 8
    machine = place(replace(LLAMA, hardware=hardware, gpus=gpus)).job.machine
    assert (machine.card, machine.topology().num_devices) == (card, gpus)
