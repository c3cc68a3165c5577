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
            "dispatch": "deepep",
            "launch": "modules",
            "fusion": ("norm", "activation", "rope", "gradients"),
        },
        origin=f"{_CONFIGS}: linear and rms_norm te, rope_fusion, enable_deepep; nemo_automodel/components/moe/"
        "experts.py, weighted_bias_swiglu_impl",
    ),
    Recipe(
        words=("automodel", "te + deepep"),
        without=("gpt-oss 120b", "deepseek v3"),
        switches={"reshard": False},
        origin="NVIDIA-NeMo/Automodel nemo_automodel/components/moe/parallelizer.py, apply_fsdp: reshard_after_forward "
        f"False where {_CONFIGS} say nothing; true of GPT-OSS 120B",
    ),
    Recipe(
        words=("automodel", "te + deepep", "deepseek v3"),
        switches={"fsdp": False, "zero": 1},
        origin=f"{_CONFIGS}/deepseek_v3_te_deepep.yaml: reshard_after_forward false, pp_size 4; PyTorch "
        "pipelining/stage.py: gradients are reduced with the last micro-batch",
    ),
    Recipe(
        words=("automodel", "te + deepep"),
        without=("flexattn", "torchsdpa"),
        switches={"attention": "flash"},
        origin=f"{_CONFIGS}: attn te",
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
            ("nemotron v3 nano", "nemotron_nano_v3_te_deepep.yaml"),
            ("nemotron v3 super", "nemotron_super_v3_te_deepep.yaml"),
        )
    ),
    *(
        Recipe(
            words=("automodel", "te + deepep", f"gpt-oss {size}"),
            columns={"ep": ep},
            origin=f"{_CONFIGS}/gptoss_{size}_te_deepep.yaml: ep_size {ep}, activation_checkpointing false",
        )
        for size, ep in (("20b", 8), ("120b", 64))
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
