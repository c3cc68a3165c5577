"""Megatron-Bridge's recipes for Blackwell: how tokens get to experts, and what Nemotron 3 Super computes again."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["EXPERT_RECIPES"]

_SUMMARY = "megatron bridge performance summary"
_CONFIGS = "Megatron-Bridge scripts/performance/configs"
_NEMOTRON = f"{_CONFIGS}/nemotronh/nemotron_3_workload_base_configs.py"

_HYBRIDEP: tuple[tuple[str, ...], ...] = (
    *(
        (source, model, before + gpu)
        for source, before in ((_SUMMARY, ""), ("verification card", "gpu_"))
        for model in ("deepseek_v3", "qwen3_235b", "qwen3_30b", "gpt_oss_120b", "nemotron_3")
        for gpu in ("gb200", "gb300")
    ),
    (_SUMMARY, "nemotron_3_super", "b300 (dgx"),
    (_SUMMARY, "nemotron_3_super", "b200 (dgx"),
    (_SUMMARY, "deepseek_v3", "b300 (dgx"),
)

EXPERT_RECIPES: tuple[Recipe, ...] = (
    *(
        Recipe(
            words=words,
            without=("summary 25.09",),
            switches={"dispatch": "hybridep"},
            origin=f"{_CONFIGS}, and perf_recipes of later releases: moe_flex_dispatcher_backend hybridep",
        )
        for words in _HYBRIDEP
    ),
    *(
        Recipe(
            words=(_SUMMARY, "nemotron_3_super", gpu, precision),
            switches={"recompute": "selective", "recompute_modules": ("norm", "activation")},
            origin=f"{_NEMOTRON}: moe_act and layernorm",
        )
        for gpu, precision in (("b300 (dgx", "nvfp4"), ("b200 (dgx", "mxfp8"))
    ),
    *(
        Recipe(
            words=words,
            switches={"module_dtypes": ("mtp:bf16",)},
            origin="Megatron-Bridge src/megatron/bridge/recipes/nemotronh/nemotron_3_super.py, keep_mtp_spec_in_bf16",
        )
        for words in (
            (_SUMMARY, "nemotron_3_super", "mxfp8"),
            ("verification card", "nemotron_3_super", "fp8mx_config"),
        )
    ),
)
