"""Megatron-Bridge: its performance summaries and its models' verification cards."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe
from clustersim.workload.fusion import FUSED

__all__ = ["BRIDGE_RECIPES"]

_BRIDGE = "Megatron-Bridge src/megatron/bridge/perf_recipes"
_CONFIGS = "Megatron-Bridge scripts/performance/configs"

_WHOLE_GRAPHS = (
    ("megatron bridge performance summary 26.06", "mxfp8"),
    ("megatron bridge performance summary 26.08", "mxfp8"),
    ("verification card", "fp8mx_config"),
)
"""Sources and precisions whose recipes for NVL72 capture a whole step as a graph."""


def _card(name: str, path: str, *, seq_len: int = 4096, **columns: int) -> Recipe:
    """A recipe of Megatron-Bridge that a model's verification card names; degrees are 1 where it says nothing."""
    whole = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "seq_len": seq_len} | columns
    return Recipe(words=("verification card", f"recipe {name}"), columns=whole, origin=f"{_BRIDGE}/{path}, {name}")


BRIDGE_RECIPES: tuple[Recipe, ...] = (
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
        switches={
            "launch": "none",
            "expert_kernels": "grouped",
            "schedule": "interleaved-overlapped",
            "attention": "cudnn-fp8",
        },
        origin=f"{_CONFIGS}/qwen/qwen3_llm_pretrain.py: set_full_iter_cg_configs on B300 as on NVL72, and "
        f"{_BRIDGE}/qwen/common.py: fp8_dot_product_attention; Megatron-Bridge pull requests 4249 and 4606",
    ),
    *(
        Recipe(
            words=(source, model, gpu, precision),
            switches={"attention": "cudnn-fp8"},
            origin=f"{_BRIDGE}/{path}: fp8_dot_product_attention; Megatron-Bridge pull requests 3983, 4249 and 4606; "
            "Transformer Engine 2.16 has it for MXFP8 on compute capability 10.0 and up, windows and sinks too",
        )
        for source, precision in _WHOLE_GRAPHS
        for model, gpu, path in (
            ("deepseek_v3", "gb300", "deepseek/gb300/deepseek_v3.py"),
            ("qwen3_235b", "gb200", "qwen/common.py"),
            ("qwen3_235b", "gb300", "qwen/common.py"),
            ("qwen3_30b", "gb200", "qwen/common.py"),
            ("qwen3_30b", "gb300", "qwen/common.py"),
            ("gpt_oss_120b", "gb200", "gpt_oss/common.py"),
            ("gpt_oss_120b", "gb300", "gpt_oss/common.py"),
        )
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
)
"""In the order in which they fill."""
