"""Benchmarks of NeMo AutoModel: PyTorch's FSDP2 around models of Hugging Face, or around its own with experts."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["AUTOMODEL_RECIPES"]

_CONFIGS = "NVIDIA-NeMo/Automodel examples/benchmark/configs"
_LATER = "NVIDIA-NeMo/Automodel examples/llm_benchmark"

AUTOMODEL_RECIPES: tuple[Recipe, ...] = (
    Recipe(
        words=("automodel",),
        switches={"clip": False},
        origin="NeMo AutoModel performance summary: no clipping of gradients",
    ),
    Recipe(
        words=("automodel", "te + deepep"),
        switches={
            "attention": "flash",
            "dispatch": "deepep",
            "launch": "modules",
            "fusion": ("norm", "activation", "rope", "gradients"),
        },
        origin=f"{_CONFIGS}: attn, linear and rms_norm te, rope_fusion, enable_deepep; nemo_automodel/components/moe/"
        "experts.py, weighted_bias_swiglu_impl",
    ),
    *(
        Recipe(
            words=("automodel", "te + deepep", model),
            columns={"recompute": "full"},
            origin=f"{_CONFIGS}/{file}: activation_checkpointing true",
        )
        for model, file in (
            ("qwen3 moe 30b", "qwen3_moe_30b_te_deepep.yaml"),
            ("deepseek v3", "deepseek_v3_te_deepep.yaml"),
        )
    ),
    Recipe(
        words=("automodel", "te + deepep", "gpt-oss 20b"),
        columns={"ep": 8},
        origin=f"{_CONFIGS}/gptoss_20b_te_deepep.yaml: ep_size 8, activation_checkpointing false",
    ),
    Recipe(
        words=("automodel", "70b", "fsdp2_prefetch"),
        without=("lora",),
        columns={"recompute": "full"},
        switches={"update_kernels": "fused"},
        origin=f"{_LATER}/llama3_3/custom_llama3_1_70b_pretrain_benchmark_8nodes.yaml: activation_checkpointing, "
        "FusedAdam",
    ),
)
