"""Megatron-Bridge's recipes of mixtures: how tokens get to experts, and what Nemotron 3 Super computes again."""

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
    (_SUMMARY, "nemotron_3_nano", "h100"),
    (_SUMMARY, "qwen3_30b", "b300 (dgx"),
    ("measurement notes", "hybridep dispatcher"),
)

_IN_A_NODE = (("qwen3_30b", "h100"), ("qwen3_30b", "b200 (dgx"), ("gpt_oss_120b", "b300 (dgx"))
"""Models and nodes of eight GPUs that HybridEP came to, with release 26.02.01 as is taken: by pull requests of February
and March 2026."""

_BEFORE = ("summary 25.11", "summary 26.02|")

EXPERT_RECIPES: tuple[Recipe, ...] = (
    *(
        Recipe(
            words=(source, *words),
            switches={"dispatch": "all_to_all"},
            origin=f"{_CONFIGS}: moe_token_dispatcher_type alltoall until pull requests 2477, 2499 and 2915, by "
            "mistake on B200; twice as slow as with dropped tokens by issue 1998",
        )
        for source in _BEFORE
        for words in _IN_A_NODE
    ),
    Recipe(
        words=("measurement notes", "alltoall dispatcher"),
        switches={"dispatch": "all_to_all"},
        origin="Megatron-Bridge docs/training/moe-optimization.md, where neither DeepEP nor HybridEP was installed",
    ),
    *(
        Recipe(
            words=(_SUMMARY, *words),
            without=("summary 25.", *_BEFORE),
            switches={"dispatch": "hybridep"},
            origin=f"{_CONFIGS}: moe_flex_dispatcher_backend hybridep, from pull requests 2477, 2499 and 2915 on",
        )
        for words in _IN_A_NODE
    ),
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
