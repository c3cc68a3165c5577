"""The recipes of sources, and what a row is with them."""

from __future__ import annotations

from typing import Any

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.automodel_recipes import AUTOMODEL_RECIPES
from clustersim.study.steps.expert_recipes import EXPERT_RECIPES
from clustersim.study.steps.gpt_recipes import GPT_RECIPES
from clustersim.study.steps.graph_recipes import GRAPH_RECIPES
from clustersim.study.steps.offload_recipes import OFFLOAD_RECIPES
from clustersim.study.steps.recipe import LAYOUT, Recipe
from clustersim.workload.fusion import FUSED

__all__ = ["recipe_of"]


def recipe_of(row: StepRow) -> tuple[StepRow, dict[str, Any], tuple[str, ...], bool]:
    """A row with what its source says elsewhere.

    Returns
    -------
    row : StepRow
    switches : dict[str, Any]
        of the plan
    assumptions : tuple[str, ...]
    published : bool
        whether layout and batch are the row's own
    """
    switches: dict[str, Any] = {}
    assumptions = []
    published = True
    for recipe in (*_RECIPES, *EXPERT_RECIPES, *GPT_RECIPES, *GRAPH_RECIPES, *OFFLOAD_RECIPES, *AUTOMODEL_RECIPES):
        if not recipe.fits(row):
            continue
        row, given = recipe.filled(row)
        switches = dict(recipe.switches) | switches
        told = ", ".join(f"{name} {value}" for name, value in (given | dict(recipe.switches)).items())
        if told:
            assumptions.append(f"recipe: {told}; from {recipe.origin}")
        published = published and not set(given) & set(LAYOUT)
    return row, switches, tuple(assumptions), published


_BRIDGE = "Megatron-Bridge src/megatron/bridge/perf_recipes"
_PRIMUS = "Primus examples/megatron/configs"
_TITAN = "torchtitan pipelining_utils.py: as many micro-batches as stages"
_CONFIGS = "Megatron-Bridge scripts/performance/configs"


def _card(name: str, path: str, *, seq_len: int = 4096, **columns: int) -> Recipe:
    """A recipe of Megatron-Bridge that a model's verification card names; degrees are 1 where it says nothing."""
    whole = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "seq_len": seq_len} | columns
    return Recipe(words=("verification card", f"recipe {name}"), columns=whole, origin=f"{_BRIDGE}/{path}, {name}")


_WHOLE_GRAPHS = (
    ("megatron bridge performance summary 26.06", "mxfp8"),
    ("megatron bridge performance summary 26.08", "mxfp8"),
    ("verification card", "fp8mx_config"),
)
"""Sources and precisions whose recipes for NVL72 capture a whole step as a graph."""

_RECIPES: tuple[Recipe, ...] = (
    Recipe(
        words=("llm-foundry",),
        switches={"reduce_dtype": "bf16"},
        origin="mosaicml/composer until pull request 2628 of October 2023: DEFAULT mixed precision names no format to "
        "reduce in, so that FSDP takes that of the weights, as PURE does",
    ),
    Recipe(
        words=("llm-foundry", "pure mixed precision"),
        switches={"recompute_early_stop": False},
        origin="mosaicml/llm-foundry scripts/train/benchmarking until pull request 543: PyTorch 1.13.1, whose "
        "checkpoints run to their end",
    ),
    Recipe(
        words=("bigscience tr11", "a100"),
        switches={"wait_kernels": True},
        origin="bigscience-workshop/bigscience train/tr11-176B-ml/tr11-176B-ml.slurm, CUDA_LAUNCH_BLOCKING=1 against "
        "hangs, and chronicles-prequel.md: 320 GPUs always hang without",
    ),
    _card(
        "deepseek_v3_pretrain_256gpu_gb200_fp8mx_config",
        "deepseek/gb200/deepseek_v3.py",
        pp=4,
        vpp=4,
        ep=64,
        global_batch=4096,
    ),
    _card(
        "gpt_oss_120b_pretrain_64gpu_gb200_bf16_config",
        "gpt_oss/gb200/gpt_oss.py",
        ep=64,
        micro_batch=4,
        global_batch=1280,
    ),
    _card(
        "gpt_oss_120b_pretrain_64gpu_gb300_fp8mx_config",
        "gpt_oss/gb300/gpt_oss.py",
        ep=16,
        micro_batch=4,
        global_batch=1280,
    ),
    _card(
        "qwen3_235b_a22b_pretrain_256gpu_gb300_fp8mx_config",
        "qwen/gb300/qwen3_moe.py",
        pp=4,
        vpp=12,
        ep=32,
        micro_batch=2,
        global_batch=8192,
    ),
    _card(
        "qwen3_30b_a3b_pretrain_8gpu_gb200_fp8mx_config",
        "qwen/gb200/qwen3_moe.py",
        ep=8,
        micro_batch=4,
        global_batch=512,
    ),
    _card(
        "nemotron_3_super_pretrain_64gpu_gb300_nvfp4_config",
        "nemotronh/gb300/nemotronh.py",
        ep=64,
        global_batch=512,
        seq_len=8192,
    ),
    Recipe(
        words=("verification card", "recipe deepseek_v3_pretrain_256gpu_gb300_fp8mx_config"),
        columns={"tp": 1, "pp": 2, "vpp": 8, "cp": 1, "ep": 32, "micro_batch": 1, "global_batch": 4096},
        origin="Megatron-Bridge performance summary 26.08, the row of this model, GPU, number of GPUs and precision",
    ),
    Recipe(
        words=("verification card", "recipe qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config"),
        columns={"tp": 1, "pp": 1, "cp": 1, "ep": 16, "micro_batch": 1, "global_batch": 1024, "seq_len": 4096},
        origin=f"{_CONFIGS}/qwen/qwen3_workload_base_configs.py",
    ),
    Recipe(
        words=("verification card", "recipe nemotron_3_nano_pretrain_8gpu_gb300_fp8mx_config"),
        columns={"tp": 1, "pp": 1, "cp": 1, "ep": 8, "micro_batch": 4, "global_batch": 512, "seq_len": 8192},
        origin=f"{_CONFIGS}/nemotronh/nemotron_3_workload_base_configs.py",
    ),
    *(
        Recipe(
            words=(source, model, gpu, precision),
            switches={"launch": "none", "expert_kernels": "grouped", "schedule": "interleaved-overlapped"},
            origin=f"{_CONFIGS}/{path}: cuda_graph_impl full_iteration, one launch a step, moe_a2a_overlap and "
            "NVTE_CUTEDSL_FUSED_GROUPED_MLP; Megatron-Bridge pull requests 3983, 4226 and 4249",
        )
        for source, precision in _WHOLE_GRAPHS
        for gpu in ("gb200", "gb300")
        for model, path in (
            ("deepseek_v3", "deepseek/deepseek_workload_base_configs.py"),
            ("qwen3_235b", "qwen/qwen3_llm_pretrain.py"),
            ("qwen3_30b", "qwen/qwen3_llm_pretrain.py"),
            ("gpt_oss_120b", "gpt_oss/gpt_oss_workload_base_configs.py"),
        )
    ),
    Recipe(
        words=("megatron bridge performance summary 26.06", "qwen3_30b", "b300 (dgx", "mxfp8"),
        switches={"launch": "none", "expert_kernels": "grouped", "schedule": "interleaved-overlapped"},
        origin=f"{_CONFIGS}/qwen/qwen3_llm_pretrain.py: set_full_iter_cg_configs on B300 as on NVL72; Megatron-Bridge "
        "pull requests 4249 and 4606",
    ),
    *(
        Recipe(
            words=(source, "gpt_oss_120b", gpu, precision),
            switches={"fusion": (*FUSED, "clamp", "expert_bias")},
            origin="Transformer Engine transformer_engine/pytorch/ops, ScaledClampedQGeGLU biases of GroupedLinear; "
            "assumed for these rows: a graph of the whole step, which they capture, holds no copy of a number",
        )
        for source, precision in _WHOLE_GRAPHS
        for gpu in ("gb200", "gb300")
    ),
    Recipe(
        words=("megatron bridge performance summary", "qwen3_235b", "h100"),
        without=("tokendrop",),
        switches={"dispatch": "all_to_all", "schedule": "interleaved-overlapped", "tp_overlap": "none"},
        origin=f"{_CONFIGS}/qwen/qwen3_workload_base_configs.py and {_BRIDGE}/qwen/h100/qwen3_moe.py: all-to-all, "
        "moe_a2a_overlap, tp_comm_overlap False",
    ),
    Recipe(
        words=("megatron bridge performance summary 26.04.01", "deepseek_v3", "b200 (dgx"),
        switches={"schedule": "interleaved-overlapped"},
        origin=f"{_CONFIGS}/deepseek/deepseek_workload_base_configs.py, version 2: moe_a2a_overlap",
    ),
    Recipe(
        words=("megatron bridge performance summary", "gpt_oss_120b", "gb200", "bf16"),
        switches={
            "dispatch": "all_to_all",
            "recompute": "selective",
            "recompute_modules": ("norm", "activation"),
        },
        origin=f"{_CONFIGS}/gpt_oss/gpt_oss_workload_base_configs.py",
    ),
    Recipe(
        words=("verification card", "gpt_oss_120b", "gb200", "bf16"),
        switches={
            "dispatch": "all_to_all",
            "schedule": "interleaved-overlapped",
            "recompute": "selective",
            "recompute_modules": ("norm", "activation"),
        },
        origin=f"{_BRIDGE}/gpt_oss/gb200/gpt_oss.py",
    ),
    Recipe(
        words=("megatron bridge performance summary", "gpt_oss_120b", "gb300", "bf16"),
        switches={"dispatch": "all_to_all"},
        origin=f"{_CONFIGS}/gpt_oss/gpt_oss_workload_base_configs.py",
    ),
    Recipe(
        words=("megatron bridge performance summary", "deepseek_v3", "gb200"),
        without=("25.09",),
        switches={"recompute": "selective", "recompute_modules": ("mla_up",)},
        origin=f"{_CONFIGS}/deepseek/deepseek_workload_base_configs.py",
    ),
    Recipe(
        words=("verification card", "recipe deepseek_v3_pretrain_256gpu_gb200_fp8mx_config"),
        switches={"recompute": "selective", "recompute_modules": ("mla_up",)},
        origin=f"{_BRIDGE}/deepseek/gb200/deepseek_v3.py",
    ),
    Recipe(
        words=("megatron bridge performance summary", "nemotron_3_nano", "h100", "fp8"),
        switches={"recompute": "selective", "recompute_modules": ("norm", "core", "moe")},
        origin=f"{_CONFIGS}/nemotronh/nemotron_3_workload_base_configs.py",
    ),
    *(
        Recipe(
            words=words,
            switches={
                "module_dtypes": ("attention:bf16", "latent:bf16", "mamba_out:mxfp8", "mtp:bf16"),
                "bf16_layers_at_end": 14,
            },
            origin="Megatron-Bridge training/mixed_precision.py, nemotron_3_super_bf16_with_nvfp4_mixed, and "
            f"{_CONFIGS}/nemotronh, te_quant.cfg, by arXiv 2604.12374: attention, latent projections and multi-token "
            "prediction in bf16, Mamba's output projections in MXFP8",
        )
        for words in (
            ("megatron bridge performance summary", "nemotron_3_super", "nvfp4"),
            ("verification card", "nemotron_3_super", "nvfp4_config"),
        )
    ),
    Recipe(
        words=("megatron bridge performance summary", "token-drop"),
        without=("token-dropless",),
        switches={"capacity_factor": 1.0, "dispatch": "all_to_all"},
        origin="Megatron-Bridge training/utils/moe_token_drop.py: a factor of 1, padded, all-to-all",
    ),
    Recipe(
        words=("the llama 3 herd of models",),
        columns={"vpp": 8, "micro_batch": 1},
        origin="arXiv 2407.21783, section 3.3.2, an interleaved schedule; assumed: chunks of one, 126 layers with "
        "embedding and head are 128 = 16 x 8",
    ),
    *(
        Recipe(
            words=("torchtitan benchmarks", words),
            switches={"tp_overlap": "ring"},
            origin="PyTorch torch/distributed/_symmetric_memory: products take and give tokens part by part",
        )
        for words in ("async tp", "asynctp")
    ),
    Recipe(
        words=("ep overlap on",),
        switches={"schedule": "interleaved-overlapped"},
        origin="Megatron-LM overlap_moe_expert_parallel_comm: exchanges beside another micro-batch",
    ),
    Recipe(
        words=("torchtitan benchmarks", "llama3.1_405b"),
        switches={"fsdp": False, "zero": 1},
        origin="torchtitan parallelize_llama.py: under a pipeline weights are not given back after the forward pass; "
        "PyTorch pipelining/stage.py: gradients are reduced with the last micro-batch",
    ),
    Recipe(
        words=("torchtitan benchmarks", "llama3.1_405b", "interleaved 1f1b", "local batch 32"),
        columns={"micro_batch": 2, "vpp": 2},
        origin=f"{_TITAN}; assumed: two stages a rank",
    ),
    Recipe(
        words=("torchtitan benchmarks", "llama3.1_405b", "local batch 32"),
        columns={"micro_batch": 4},
        origin=_TITAN,
    ),
    Recipe(
        words=("torchtitan benchmarks", "llama3.1_405b", "local batch 8"),
        columns={"micro_batch": 1},
        origin=_TITAN,
    ),
    Recipe(
        words=("torchtitan benchmarks", "70b-256-2d"),
        columns={
            "gpus": 256,
            "tp": 8,
            "pp": 1,
            "dp": 32,
            "micro_batch": 16,
            "global_batch": 512,
            "seq_len": 8192,
            "layers": 80,
            "hidden": 8192,
            "heads": 64,
            "kv_heads": 8,
            "ffn": 28672,
            "gated_mlp": 1,
            "vocab": 128256,
            "sharding": "FSDP2",
            "recompute": "full",
            "precision": "float8 linear",
        },
        origin="torchtitan benchmarks/llama3_h100_202412_torchtitan.md, table 4; the shape is Llama 3.1 70B's",
    ),
    Recipe(
        words=("awsome-distributed-training", "llama3_8b"),
        columns={"micro_batch": 1, "grad_accum": 1, "recompute": "selective (op)"},
        origin="torchtitan v0.1 llama3_8b.toml, batch_size 1, no accumulation, mode selective, option op",
    ),
    Recipe(
        words=("awsome-distributed-training", "with optimizations"),
        columns={"precision": "float8"},
        origin="awsome-distributed-training torchtitan/slurm/README.md: enable_float8_linear",
    ),
    Recipe(
        words=("primus", "mi300x", "llama2_7b"),
        columns={"micro_batch": 4, "global_batch": 256, "seq_len": 4096},
        origin=f"{_PRIMUS}/MI300X/llama2_7B-BF16-pretrain.yaml; assumed: the same under a pipeline",
    ),
    Recipe(
        words=("primus", "mi355x", "qwen3_235b"),
        columns={"micro_batch": 4, "global_batch": 1024, "seq_len": 4096},
        switches={
            "recompute": "full",
            "recompute_method": "block",
            "recompute_layers": 3,
            "gradient_dtype": "bf16",
        },
        origin=f"{_PRIMUS}/MI355X/qwen3_235B_A22B-BF16-pretrain.yaml, 8192 sequences on 32 nodes, full recompute of "
        "3 layers, main_grads_dtype bf16; assumed: as many sequences a node on 4",
    ),
)
"""In the order in which they fill."""
