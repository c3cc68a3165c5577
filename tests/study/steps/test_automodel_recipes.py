"""Rows of NeMo AutoModel ran PyTorch's FSDP2, not Megatron-Core, whose name NeMo's rows share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.step_job import place

LLAMA = StepRow(
    line=2,
    source="NeMo AutoModel performance summary",
    year=2026,
    hardware="DGX-H100",
    gpus=64,
    model="Llama3 70B",
    seq_len=8192,
    tp=1,
    pp=1,
    cp=2,
    micro_batch=1,
    global_batch=128,
    sharding="FSDP2",
    precision="BF16",
    metric="tokens_per_s_per_gpu",
    value=867.0,
    unit="tokens/s/GPU",
    notes="TE + fsdp2_prefetch",
)


def test_a_model_of_hugging_face_under_fsdp2() -> None:
    step = place(LLAMA)
    plan = step.job.plan
    assert (step.profile.name, plan.fsdp, plan.launch, plan.recompute) == ("fsdp2-2024", True, "eager", "full")
    assert (plan.clip, plan.update_kernels) == (False, "fused")


@pytest.mark.parametrize(
    ("model", "recompute", "ep"), [("Qwen3 MoE 30B", "full", 4), ("GPT-OSS 20B", "none", 8), ("GPT-OSS 20B", "none", 4)]
)
def test_its_own_models_with_experts(model: str, recompute: str, ep: int) -> None:
    told = None if (model, ep) == ("GPT-OSS 20B", 8) else ep
    own = replace(LLAMA, model=model, gpus=8, cp=1, ep=told, seq_len=4096, notes="TE + DeepEP")
    plan = place(own).job.plan
    assert (plan.dispatch, plan.launch, plan.attention, plan.ep) == ("deepep", "modules", "flash", ep)
    assert (plan.recompute, plan.fsdp, plan.reshard) == (recompute, True, False)
    sdpa = place(replace(own, notes="TE + DeepEP + TorchSDPA")).job.plan
    assert (sdpa.dispatch, sdpa.attention) == ("deepep", "flash-2")


@pytest.mark.parametrize(
    ("model", "degrees", "sharding"),
    [
        ("GPT-OSS 120B", {"gpus": 64, "ep": 64}, (True, 0, True)),
        ("DeepSeek V3 671B", {"gpus": 256, "pp": 4, "vpp": 8, "ep": 64, "global_batch": 512}, (False, 1, True)),
    ],
)
def test_weights_that_are_given_back_and_not(
    model: str, degrees: dict[str, int], sharding: tuple[bool, int, bool]
) -> None:
    """reshard_after_forward is true of GPT-OSS 120B and false of DeepSeek-V3, which has a pipeline."""
    own = replace(LLAMA, model=model, cp=1, seq_len=4096, notes="TE + DeepEP", **degrees)
    plan = place(own).job.plan
    assert (plan.fsdp, plan.zero, plan.reshard) == sharding


def test_adapters_on_all_matrices_and_no_packing() -> None:
    job = place(replace(LLAMA, gpus=1, cp=1, seq_len=4096, micro_batch=2, global_batch=32, notes="LoRA; TE")).job
    assert job.seq_lens == "fixed"
    assert job.model.adapters is not None
    assert (job.model.adapters.rank, len(job.model.adapters.targets), job.plan.recompute) == (16, 7, "none")
