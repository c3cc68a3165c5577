"""What a source leaves out is filled from where it says it stands, and told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.recipe import LAYOUT
from clustersim.study.steps.recipes import recipe_of
from clustersim.study.steps.refusal import REASONS, RefusedError
from clustersim.study.steps.step_job import place

CARD = StepRow(
    line=2,
    source="Megatron Bridge model verification card",
    year=2026,
    hardware="GB200 NVL72",
    gpus=256,
    model="DEEPSEEK_V3",
    precision="fp8_mx",
    metric="iteration_time",
    value=1.0,
    unit="s",
    notes="mean of last 10 of 50 steps; recipe deepseek_v3_pretrain_256gpu_gb200_fp8mx_config; TP/PP/EP in the recipe",
)


def test_a_named_recipe_gives_layout_and_batch() -> None:
    step = place(CARD)
    plan = step.job.plan
    assert (plan.tp, plan.pp, plan.vpp, plan.ep, plan.dp) == (1, 4, 4, 64, 64)
    assert (plan.recompute, plan.recompute_modules) == ("selective", ("mla_up",))
    assert (step.job.seq_len, step.job.global_batch, step.job.micro_batch) == (4096, 4096, 1)
    assert not step.published
    assert any(text.startswith("recipe:") and "deepseek/gb200/deepseek_v3.py" in text for text in step.assumptions)


def test_multi_token_prediction_is_left_out_where_the_table_says_so() -> None:
    assert place(replace(CARD, id="26.08-DeepSeekV3-GB200")).job.model.mtp == 1
    assert place(replace(CARD, id="25.11-DeepSeekV3_(w/_MTP)-GB200")).job.model.mtp == 1
    assert place(replace(CARD, id="25.11-DeepSeekV3_(w/o_MTP)-GB200")).job.model.mtp == 0


def test_what_the_row_publishes_stays() -> None:
    plan = place(replace(CARD, pp=8, vpp=2, ep=32)).job.plan
    assert (plan.pp, plan.vpp, plan.ep) == (8, 2, 32)


def test_a_recipe_of_another_name_gives_nothing() -> None:
    other = replace(CARD, notes="recipe deepseek_v3_pretrain_1024gpu_h100_bf16_config")
    assert recipe_of(other) == (other, {}, (), True)
    with pytest.raises(RefusedError) as refused:
        place(other)
    assert refused.value.reason == REASONS["layout"]


def test_an_unknown_model_is_told_before_a_batch_that_is_not_published() -> None:
    with pytest.raises(RefusedError) as refused:
        place(replace(CARD, model="nobody's", notes=""))
    assert refused.value.reason == REASONS["model"]


SUMMARY = replace(
    CARD,
    source="NVIDIA Megatron Bridge performance summary 25.09",
    model="QWEN3_30B_A3B",
    gpus=8,
    tp=1,
    pp=1,
    vpp=1,
    ep=8,
    micro_batch=1,
    global_batch=512,
    seq_len=4096,
    notes="force-balanced experts, token-drop; NeMo 25.09 container",
)


def test_dropped_tokens_are_a_capacity_factor() -> None:
    drops, keeps = place(SUMMARY), place(replace(SUMMARY, notes="force-balanced experts, token-dropless"))
    assert (drops.job.plan.capacity_factor, drops.job.plan.dispatch) == (1.0, "all_to_all")
    assert (keeps.job.plan.capacity_factor, keeps.job.plan.dispatch) == (None, "deepep")
    assert drops.published  # a switch of the software is no layout


def test_the_interleaved_schedule_of_llama_3() -> None:
    herd = replace(
        CARD,
        source="The Llama 3 Herd of Models, Table 4",
        hardware="H100-SXM5-80GB HBM3 700 W (Meta Grand Teton)",
        nodes=1024,
        gpus=8192,
        model="LLAMA3.1_405B",
        tp=8,
        pp=16,
        global_batch=2048,
        seq_len=8192,
        sharding="FSDP (ZeRO-2 style in pipeline)",
        precision="bf16",
        notes="",
    )
    step = place(herd)
    assert (step.job.plan.vpp, step.job.plan.zero, step.job.num_micro_batches) == (8, 2, 32)
    assert not step.published


def test_every_layout_column_is_one_of_a_row() -> None:
    assert set(LAYOUT) <= set(StepRow.__dataclass_fields__)


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        ("1F1B; local batch 32", (4, None)),
        ("interleaved 1F1B; local batch 32", (2, 2)),
        ("1F1B; local batch 8", (1, None)),
    ],
)
def test_a_pipeline_of_torchtitan_keeps_weights_and_has_as_many_micro_batches_as_stages(
    notes: str, expected: tuple[int, int | None]
) -> None:
    row = StepRow(line=2, source="torchtitan benchmarks", model="LLAMA3.1_405B", notes=notes, value=1.0)
    filled, switches, assumptions, published = recipe_of(row)
    assert (filled.micro_batch, filled.vpp) == expected
    assert switches == {"fsdp": False, "zero": 1}
    assert len(assumptions) == 2
    assert not published


ZENFLOW = StepRow(
    line=2,
    id="zenflow-qwen3b-zo-bound",
    source="DeepSpeed ZenFlow core binding blog",
    year=2025,
    hardware="A100-SXM4-40GB (2 GPUs of a DGX A100, 2x EPYC 7742)",
    gpus=2,
    model="Qwen2.5-3B",
    layers=36,
    hidden=2048,
    heads=16,
    kv_heads=2,
    ffn=11008,
    gated_mlp=1,
    vocab=151936,
    tp=1,
    pp=1,
    dp=2,
    zero_stage=2,
    precision="bf16",
    offload="optimizer CPU (ZeRO-Offload)",
    metric="iteration_time",
    value=2497.0,
    unit="ms",
)


def test_a_section_of_a_source_that_measured_another_model() -> None:
    plain, practicality = place(ZENFLOW), place(replace(ZENFLOW, id="zenflow-qwen3b-prac-zo-bound"))
    assert (plain.job.model.name, practicality.job.model.name) == ("qwen2.5-3b", "qwen2.5-1.5b")
    assert (plain.job.micro_batch, plain.job.seq_len, plain.job.plan.recompute) == (4, 512, "none")
    assert any("practicality" in text for text in practicality.assumptions)
    assert plain.profile.name == "deepspeed-huggingface-2024"


@pytest.mark.parametrize(("model", "tp", "parameters"), [("GPT 500B", 4, 0.5e12), ("GPT 20T", 8, 20e12)])
def test_shapes_of_trillions_have_the_size_of_their_name(model: str, tp: int, parameters: float) -> None:
    row = replace(
        ZENFLOW,
        source="ZeRO-Infinity (SC21) Figure 5a",
        hardware="V100-SXM3-32GB (DGX-2)",
        nodes=32,
        gpus=512,
        model=model,
        layers=None,
        hidden=None,
        heads=None,
        kv_heads=None,
        ffn=None,
        gated_mlp=None,
        vocab=None,
        tp=None,
        pp=None,
        dp=None,
        zero_stage=3,
        precision="fp16",
        offload="CPU + NVMe (5T and above)",
    )
    job = place(row).job
    assert job.plan.tp == tp
    assert job.model.num_parameters == pytest.approx(parameters, rel=0.02)


def test_recipes_that_capture_a_step_also_hide_the_exchanges_of_experts() -> None:
    plan = place(CARD).job.plan
    assert (plan.launch, plan.schedule) == ("none", "interleaved-overlapped")
    summary = replace(
        CARD, source="NVIDIA Megatron Bridge performance summary 26.04", precision="MXFP8", global_batch=4096
    )
    before = place(replace(summary, tp=1, pp=4, ep=64, micro_batch=1, seq_len=4096, notes="")).job.plan
    assert (before.launch, before.schedule) == ("modules", None)


@pytest.mark.parametrize(
    ("source", "model", "drops"),
    [
        ("Megatron-Core r0.8.0 weak-scaling table", "GPT 18B", True),
        ("NVIDIA NeMo 24.07-v2 performance summary (FP8)", "GPT3_20B", True),
        ("NVIDIA NeMo 24.07-v2 performance summary (FP8)", "LLAMA2_13B", False),
        ("Megatron-Core r0.12 table", "gpt-oss-20b", False),
    ],
)
def test_models_of_the_time_of_gpt_3_drop_and_later_ones_do_not(source: str, model: str, drops: bool) -> None:
    row = replace(CARD, source=source, model=model, notes="", hardware="H100", precision="bf16")
    switches, told = recipe_of(row)[1:3]
    assert switches.get("dropout", False) is drops
    assert any("dropout True" in text for text in told) is drops


def test_strong_scaling_of_megatron_core_keeps_its_layout() -> None:
    scaled = replace(
        CARD,
        source="Megatron-Core r0.8.0 strong scaling (README text + figure)",
        model="GPT 177B",
        notes="",
        hardware="H100-SXM5-80GB (DGX H100)",
        precision="bf16",
        layers=96,
        hidden=12288,
        heads=96,
        ffn=49152,
        vocab=131072,
        seq_len=4096,
        global_batch=1152,
    )
    for gpus, replicas in ((96, 1), (4608, 48)):
        plan = place(replace(scaled, gpus=gpus)).job.plan
        assert (plan.tp, plan.pp, plan.vpp, plan.dp) == (8, 12, 8, replicas)


def test_nemotron_3_super_keeps_modules_and_layers_out_of_its_formats() -> None:
    row = replace(
        CARD,
        source="NVIDIA Megatron Bridge performance summary 26.06",
        hardware="B300 (DGX B300, 8 GPU/node)",
        gpus=64,
        model="Nemotron_3_Super",
        notes="force-balanced experts, token-dropless",
        tp=1,
        pp=1,
        dp=64,
        ep=8,
        micro_batch=1,
        global_batch=512,
        seq_len=8192,
    )
    four, eight = (place(replace(row, precision=words)).job for words in ("NVFP4", "MXFP8"))
    assert (four.dtype, four.plan.bf16_layers_at_end, eight.plan.bf16_layers_at_end) == ("nvfp4", 14, 0)
    assert "mamba_out:mxfp8" in four.plan.module_dtypes
    assert eight.plan.module_dtypes == ("mtp:bf16",)
    assert (four.plan.recompute_modules, eight.plan.recompute) == (("norm", "activation"), "none")
    assert {four.plan.dispatch, eight.plan.dispatch} == {"hybridep"}


@pytest.mark.parametrize(
    ("row_id", "hardware", "precision", "captured"),
    [
        ("LLAMA3_70B-GB200-8-LoRA", "GB200 NVL72", "fp8", True),
        ("LLAMA3_70B-B200-8-LoRA", "B200 (DGX B200)", "fp8_mx", True),
        ("LLAMA3_70B-GB200-32-SFT", "GB200 NVL72", "fp8_mx", True),
        ("LLAMA3_70B-H100-32-SFT", "H100 (DGX H100)", "fp8", True),
        ("LLAMA3_70B-H100-32-SFT", "H100 (DGX H100)", "bf16", False),
        ("LLAMA3_70B-H100-8-LoRA", "H100 (DGX H100)", "fp8", False),
        ("LLAMA3_70B-GB200-64", "GB200 NVL72", "fp8", False),
    ],
)
def test_fine_tuning_captures_mlps(row_id: str, hardware: str, precision: str, captured: bool) -> None:
    row = replace(
        CARD,
        source="NVIDIA Megatron Bridge performance summary 26.06",
        id=row_id,
        model="LLAMA3_70B",
        hardware=hardware,
        precision=precision,
        notes="",
    )
    assert (recipe_of(row)[1].get("cuda_graphs") == ("mlp",)) is captured


@pytest.mark.parametrize(
    ("release", "hardware", "precision", "dispatch", "captured", "launch"),
    [
        ("26.02", "B200 (DGX B200, 8 GPU node)", "MXFP8", "all_to_all", ("moe_router", "moe_preprocess"), "modules"),
        (
            *("26.02.01", "B200 (DGX B200, 8 GPU node)", "MXFP8"),
            *("hybridep", ("attn", "moe_router", "moe_preprocess"), "modules"),
        ),
        ("26.02", "H100-SXM5-80GB (DGX H100)", "FP8", "all_to_all", None, "modules"),
        ("26.04", "H100-SXM5-80GB (DGX H100)", "FP8", "hybridep", None, "modules"),
        ("26.04", "B300 (DGX B300, 8 GPU node)", "MXFP8", "hybridep", ("moe_router", "moe_preprocess"), "modules"),
        ("26.06", "B300 (DGX B300, 8 GPU node)", "MXFP8", "hybridep", ("moe_router", "moe_preprocess"), "none"),
    ],
)
def test_qwen3_30b_in_a_node_by_release(
    release: str, hardware: str, precision: str, dispatch: str, captured: tuple[str, ...] | None, launch: str
) -> None:
    row = replace(
        CARD,
        source=f"NVIDIA Megatron Bridge performance summary {release}",
        id="",
        model="QWEN3_30B_A3B",
        hardware=hardware,
        precision=precision,
        notes="force-balanced experts, token-dropless",
    )
    switches = recipe_of(row)[1]
    assert switches["dispatch"] == dispatch
    assert switches.get("cuda_graphs") == captured
    assert switches.get("launch", "modules") == launch


@pytest.mark.parametrize(
    ("release", "model", "hardware", "precision", "attention"),
    [
        ("26.06", "DEEPSEEK_V3", "GB300 NVL72", "MXFP8", "cudnn-fp8"),
        ("26.08", "QWEN3_235B_A22B", "GB300 NVL72", "MXFP8", "cudnn-fp8"),
        ("26.06", "QWEN3_30B_A3B", "GB200 NVL72", "MXFP8", "cudnn-fp8"),
        ("26.06", "QWEN3_30B_A3B", "B300 (DGX B300, 8 GPU node)", "MXFP8", "cudnn-fp8"),
        ("26.06", "DEEPSEEK_V3", "GB200 NVL72", "MXFP8", None),
        ("26.06", "DEEPSEEK_V3", "GB300 NVL72", "BF16", None),
        ("26.04", "QWEN3_235B_A22B", "GB300 NVL72", "MXFP8", None),
        ("26.06", "GPT_OSS_120B", "GB300 NVL72", "MXFP8", "cudnn-fp8"),
        ("26.06", "GPT_OSS_120B", "GB300 NVL72", "NVFP4", None),
    ],
)
def test_attention_in_fp8_by_release(
    release: str, model: str, hardware: str, precision: str, attention: str | None
) -> None:
    row = replace(
        CARD,
        source=f"NVIDIA Megatron Bridge performance summary {release}",
        id="",
        model=model,
        hardware=hardware,
        precision=precision,
        notes="",
    )
    assert recipe_of(row)[1].get("attention") == attention


def test_a_note_tells_the_dispatcher() -> None:
    notes = "HybridEP dispatcher; force balance; CUDA graph moe_router+moe_preprocess"
    row = replace(CARD, source="Megatron Bridge skill/measurement notes", model="QWEN3_30B_A3B", notes=notes)
    assert recipe_of(row)[1]["dispatch"] == "hybridep"
    without = replace(row, notes=f"alltoall dispatcher without fused permute, 5-step smoke run; {notes}")
    assert recipe_of(without)[1]["dispatch"] == "all_to_all"
    assert recipe_of(without)[1]["cuda_graphs"] == ("moe_router", "moe_preprocess")


def test_an_id_tells_the_schedule_of_torchtitan_too() -> None:
    row = StepRow(
        line=2,
        id="titan-405b-512-int1f1b",
        source="torchtitan benchmarks",
        model="LLAMA3.1_405B",
        notes="compile+AsyncTP; local batch 32",
        value=1.0,
    )
    filled, *_ = recipe_of(row)
    assert (filled.micro_batch, filled.vpp) == (2, 2)


@pytest.mark.parametrize(("source", "kernels"), [("nanoGPT README", "fused"), ("a lab, PyTorch DDP", "foreach")])
def test_nanogpt_updates_in_one_kernel(source: str, kernels: str) -> None:
    row = StepRow(
        line=2,
        source=source,
        year=2023,
        hardware="8x A100 40GB",
        gpus=8,
        model="GPT-2",
        layers=12,
        hidden=768,
        heads=12,
        ffn=3072,
        vocab=50304,
        seq_len=1024,
        tp=1,
        pp=1,
        micro_batch=12,
        global_batch=480,
        precision="bf16",
        sharding="DDP",
        metric="iteration_time",
        value=250.0,
        unit="ms",
    )
    assert place(row).job.plan.update_kernels == kernels
