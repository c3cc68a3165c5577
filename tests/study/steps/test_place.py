"""A published row becomes a job: cluster, model, plan, batch and number format, or a reason why not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.refusal import REASONS, RefusedError
from clustersim.study.steps.step_job import place

GPT = StepRow(
    line=2,
    source="Megatron-LM SC21 Table 1",
    year=2021,
    hardware="A100-SXM4-80GB (DGX A100)",
    interconnect="8x200 Gb/s HDR IB per node",
    nodes=2,
    gpus=16,
    model="GPT small",
    layers=8,
    hidden=1024,
    heads=16,
    ffn=4096,
    vocab=51200,
    seq_len=1024,
    tp=4,
    pp=2,
    vpp=2,
    zero_stage=0,
    micro_batch=2,
    global_batch=16,
    recompute="full",
    precision="fp16 mixed",
    metric="iteration_time",
    value=1.0,
    unit="s",
)


def row(**changes: Any) -> StepRow:
    return replace(GPT, **changes)


def test_a_row_of_2021() -> None:
    step = place(GPT)
    plan = step.job.plan
    assert (step.job.machine.card, step.job.machine.nodes) == ("dgx-a100", 2)
    assert (plan.tp, plan.pp, plan.dp, plan.vpp, plan.recompute) == (4, 2, 2, 2, "full")
    assert (plan.attention, plan.dropout, plan.overlap_dp, plan.sequence_parallel) == ("unfused", True, False, False)
    assert (step.job.dtype, step.job.num_micro_batches) == ("fp16", 4)
    assert step.known_network
    assert step.job.model.tied_embeddings
    assert step.job.model.positions == "learned"


def test_equal_rows_are_one_job() -> None:
    assert place(GPT).job == place(row(line=9, value=2.0, notes="again")).job
    assert hash(place(GPT).job) == hash(place(row(line=9)).job)
    assert place(GPT).job != place(row(micro_batch=1)).job


def test_the_profile_gives_what_the_row_leaves_open() -> None:
    step = place(row(source="NVIDIA NeMo 24.07", zero_stage=None, recompute="", micro_batch=None))
    plan = step.job.plan
    assert (plan.attention, plan.zero, plan.tp_overlap, plan.sequence_parallel) == ("flash", 1, "userbuffers", True)
    assert {text.partition(":")[0] for text in step.assumptions} >= {
        "sharding",
        "recompute",
        "batch",
        "profile",
        "card",
    }


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("FULL_SHARD", {"fsdp": True, "reshard": True}),
        ("SHARD_GRAD_OP", {"fsdp": True, "reshard": False}),
        ("distributed optimizer (ZeRO-1)", {"fsdp": False, "zero": 1}),
        ("FSDP (ZeRO-2 style in pipeline)", {"fsdp": False, "zero": 2}),
    ],
)
def test_sharding(text: str, fields: dict[str, Any]) -> None:
    plan = place(row(sharding=text, zero_stage=1)).job.plan
    assert {name: getattr(plan, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("text", "source", "recipe"),
    [
        ("MXFP8", "NVIDIA Megatron Bridge", "mxfp8"),
        ("NVFP4", "NVIDIA Megatron Bridge", "nvfp4"),
        ("FP8", "NVIDIA Megatron Bridge", "fp8_current"),
        ("fp8", "NVIDIA NeMo 24.07", "fp8"),
        ("FP8-CS (FP8-MX)", "NVIDIA Megatron Bridge", "fp8_current"),
        ("float8 rowwise", "torchtitan benchmarks", "fp8_rowwise"),
        ("bf16 (not stated)", "lab", "bf16"),
        ("fp32 (SIMT GEMM, no tensor cores)", "NeuSight", "fp32"),
        ("BF16/FP8", "OLMo-core", "fp8"),
        ("bf16-true", "LitGPT", "bf16_pure"),
        ("FP8, per-tensor current scaling", "lab", "fp8_current"),
        ("FP8 blockwise", "lab", "fp8_blockwise"),
        ("fp8 (bf16 master weights)", "torchtitan benchmarks", "fp8_current"),
    ],
)
def test_number_formats(text: str, source: str, recipe: str) -> None:
    assert place(row(precision=text, source=source)).job.dtype == recipe


def test_a_card_with_the_rows_own_numbers() -> None:
    model = place(row(model="LLAMA3_70B width, 12 layers", layers=12, hidden=8192, heads=64, kv_heads=8)).job.model
    assert (model.num_layers, model.hidden, model.gated_mlp) == (12, 8192, True)
    assert model.vocab == 51200  # the row's, not the card's


def test_experts_come_with_a_card_or_not_at_all() -> None:
    shape: dict[str, Any] = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 14336, "experts": 8, "topk": 2}
    moe = row(model="Mixtral-8x7B", **shape, tp=1, pp=1, vpp=None, moe_ffn=14336, global_batch=32)
    assert place(moe).job.model.experts is not None
    with pytest.raises(RefusedError, match="not in its columns; nearest card: mixtral-8x7b"):
        place(replace(moe, model="Mixtral 8x9B"))
    with pytest.raises(RefusedError, match="8 experts, llama-3-8b has none"):
        place(replace(moe, model="Llama 3 8B"))


def test_a_domain_of_72_is_filled_with_64() -> None:
    one = place(row(hardware="GB200 NVL72", gpus=64, nodes=None, tp=4, pp=2)).job.machine
    four = place(row(hardware="GB200 NVL72", gpus=256, nodes=None, tp=4, pp=2, global_batch=64)).job
    assert (one.nodes, one.devices(64)) == (1, None)
    assert four.machine.nodes == 4
    placed = four.machine.devices(256)
    assert placed is not None
    assert placed[63:66] == [63, 72, 73]


@pytest.mark.parametrize(
    ("hardware", "link", "known"),
    [
        ("A100-SXM4-40GB", "RoCE 1600 Gb/s node-to-node (8x200)", True),
        ("V100-SXM2-32GB (Jean Zay, 4 GPU node)", "NVLink2; 100 Gb/s Omni-Path", True),
        ("MI250X (counted per GCD)", "Infinity Fabric; 4x200 Gb/s Slingshot-11 per node (8 GCD)", True),
        ("A100-SXM4-80GB", "NVLink3; IB", False),
    ],
)
def test_networks_that_are_told(hardware: str, link: str, known: bool) -> None:
    step = place(row(hardware=hardware, interconnect=link, nodes=None, gpus=32, tp=4, pp=2, global_batch=16))
    assert step.known_network == known


def test_four_gpus_of_jean_zay_have_a_port_each() -> None:
    link = "NVLink2; 100 Gb/s Omni-Path"
    machine = place(row(hardware="V100-SXM2-32GB (Jean Zay, 4 GPU node)", interconnect=link, nodes=4)).job.machine
    assert (machine.ranks_per_node, dict(machine.changes)["fabric.nics_per_node"]) == (4, 8)


def test_an_assumed_micro_batch_is_told_where_there_is_a_choice() -> None:
    free, forced = place(row(micro_batch=None)), place(row(micro_batch=None, global_batch=2))
    assert (free.published, forced.published) == (False, True)
    assert (free.job.micro_batch, forced.job.micro_batch) == (1, 1)


def test_half_used_nodes() -> None:
    devices = place(row(gpus=8, nodes=2, tp=2)).job.machine.devices(8)
    assert devices == [0, 1, 2, 3, 8, 9, 10, 11]


def test_a_table_of_memory_notes_its_degrees() -> None:
    changes = {"metric": "max_memory_allocated", "unit": "GiB", "global_batch": None, "vpp": None, "nodes": 1}
    job = place(row(**changes, gpus=8, tp=1, notes="maximum over ranks; CP 4, EP 1")).job
    assert (job.plan.cp, job.plan.ep, job.plan.dp, job.num_micro_batches) == (4, 1, 1, 4)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"hardware": "TPU v5p"}, "hardware"),
        ({"layers": None}, "model"),
        ({"vocab": None}, "model"),
        ({"layers": 10**12}, "numbers"),
        ({"hidden": 1025}, "numbers"),
        ({"experts": 8}, "model"),
        ({"tp": None, "pp": None}, "layout"),
        ({"gpus": None}, "layout"),
        ({"gpus": 12}, "numbers"),
        ({"dp": 4}, "numbers"),
        ({"global_batch": 17}, "numbers"),
        ({"global_batch": None}, "batch"),
        ({"seq_len": None}, "batch"),
        ({"offload": "optimizer CPU"}, "offload"),
        ({"precision": "see recipe"}, "precision"),
        ({"recompute": "sometimes"}, "method"),
    ],
)
def test_refusals(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(RefusedError) as refused:
        place(row(**changes))
    assert refused.value.reason == REASONS[word]
    assert refused.value.detail


def test_optimizer_state_within_neighbours() -> None:
    job = place(
        row(
            sharding="ZeRO-1 within 8 GPUs (hybrid)",
            zero_stage=1,
            nodes=4,
            gpus=32,
            tp=2,
            pp=1,
            vpp=None,
            global_batch=64,
        )
    ).job
    strategy = job.plan.sharding
    assert strategy is not None
    shared = strategy(16)
    assert (shared.optimizer, shared.inner) == (8, 8)
    assert [(move.kind, move.over) for move in (*shared.reduce, *shared.refresh)] == [
        ("all_reduce", "all"),
        ("all_gather", "inner"),
    ]
    assert job.plan.gradient_dtype == "bf16"


def test_adapters_where_the_notes_say_lora() -> None:
    llama = row(
        model="LLAMA2_13B", layers=40, hidden=5120, heads=40, ffn=13824, vocab=32000, source="NVIDIA NeMo 24.07"
    )
    plain, tuned = place(replace(llama, notes="SFT")), place(replace(llama, notes="LoRA; packed sequences of 4096"))
    assert plain.job.model.adapters is None
    assert tuned.job.model.adapters is not None
    assert tuned.job.model.num_trainable_parameters == 40 * 32 * (3 * 5120 + 3 * 5120)
    assert any(text.startswith("adapters:") for text in tuned.assumptions)


def test_a_round_batch_that_is_not_whole_is_the_nearest_that_is() -> None:
    near = place(row(gpus=12, nodes=None, tp=2, pp=2, micro_batch=1, global_batch=1000))
    assert (near.job.plan.dp, near.job.global_batch) == (3, 999)
    assert not near.published
    assert any(text.startswith("batch: 999") for text in near.assumptions)


def test_heads_of_the_row_are_those_of_keys_too() -> None:
    model = place(row(model="GPT 22B", ffn=None, layers=48, hidden=6144, heads=48)).job.model
    assert (model.num_heads, model.num_kv_heads, model.head_dim) == (48, 48, 128)


@pytest.mark.parametrize(
    ("said", "vpp", "expected"),
    [
        ("schedule zero-bubble", 1, ("zb-h1", None)),
        ("schedule zbb (zero bubble)", 2, ("zb-h1", None)),
        ("schedule 1f1b-interleaved-vpp3", 3, ("interleaved", 3)),
        ("schedule zbv-formatted", 2, ("zb-v", None)),
        ("schedule 1f1b", 1, (None, None)),
    ],
)
def test_schedules_of_primus(said: str, vpp: int, expected: tuple[str | None, int | None]) -> None:
    plan = place(row(notes=f"{said}; 406 TFLOP/s", vpp=vpp)).job.plan
    assert (plan.schedule, plan.vpp) == expected


def test_a_source_that_keeps_one_dense_layer() -> None:
    changes = {"model": "DeepSeek-V3 width", "layers": 4, "hidden": 7168, "heads": 128, "ffn": None, "vocab": None}
    moe = row(
        **changes, source="SimuMax B200 release", hardware="B200-SXM", gpus=8, tp=1, pp=1, vpp=None, recompute="no"
    )
    for source, dense in [("SimuMax B200 release", 1), ("another", 3)]:
        experts = place(replace(moe, source=source, notes="CP 1, EP 8")).job.model.experts
        assert experts is not None
        assert experts.first_dense == dense


def test_stand_ins_for_gradients_are_those_of_the_profile() -> None:
    for source, zero, expected in [
        ("SimuMax", 1, "kept"),
        ("Megatron-LM README", 1, "passing"),
        ("SimuMax", 3, "none"),
    ]:
        assert place(row(source=source, year=2024, zero_stage=zero, pp=1, vpp=None)).job.plan.placeholders == expected


def test_memory_of_a_pipeline_needs_the_micro_batch() -> None:
    asked = {"metric": "peak memory", "unit": "GiB", "micro_batch": None}
    with pytest.raises(RefusedError, match="the micro-batch is not published"):
        place(row(**asked))
    assert place(row(**asked, pp=1, vpp=None)).job.micro_batch == 1
    assert place(row(**asked, grad_accum=4)).job.micro_batch == 2
