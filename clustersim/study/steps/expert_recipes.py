"""How recipes of Megatron-Bridge for NVL72 send tokens to experts: ``moe_flex_dispatcher_backend``."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["EXPERT_RECIPES"]

EXPERT_RECIPES: tuple[Recipe, ...] = tuple(
    Recipe(
        words=(source, model, before + gpu),
        without=("summary 25.09", "b200 (dgx", "b300 (dgx"),
        switches={"dispatch": "hybridep"},
        origin="Megatron-Bridge src/megatron/bridge/perf_recipes and before scripts/performance/configs, recipes of "
        "GB200 and GB300: moe_flex_dispatcher_backend hybridep",
    )
    for source, before in (("megatron bridge performance summary", ""), ("verification card", "gpu_"))
    for model in ("deepseek_v3", "qwen3_235b", "qwen3_30b", "gpt_oss_120b", "nemotron_3")
    for gpu in ("gb200", "gb300")
)
