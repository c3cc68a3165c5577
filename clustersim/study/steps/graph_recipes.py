"""Parts of layers that the recipes of Megatron-Bridge capture as CUDA graphs: their ``cuda_graph_scope``."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["GRAPH_RECIPES"]

_CONFIGS = "Megatron-Bridge scripts/performance/configs"
_ROUTER = ("moe_router", "moe_preprocess")
_ATTENTION = ("attn", *_ROUTER)
_HYBRID = ("attn", "mamba", *_ROUTER)
_DEEPSEEK = "deepseek/deepseek_workload_base_configs.py"
_QWEN = "qwen/qwen3_workload_base_configs.py"
_GPT_OSS = "gpt_oss/gpt_oss_workload_base_configs.py"
_LLAMA = "llama/llama3_workload_base_configs.py"
_NEMOTRON = "nemotronh/nemotron_3_workload_base_configs.py"
_FIRST = ("summary 26.02", "summary 26.04")

_SCOPES: tuple[tuple[tuple[str, ...], tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("summary 26",), ("nemotron_3_super", "gb200"), _NEMOTRON, _HYBRID),
    (("summary 26", "verification card"), ("nemotron_3_super", "gb300"), _NEMOTRON, _HYBRID),
    (("summary 26",), ("nemotron_3_super", "b300 (dgx"), _NEMOTRON, _HYBRID),
    (("summary 26",), ("nemotron_3_super", "b200 (dgx", "nvfp4"), _NEMOTRON, _HYBRID),
    (("verification card",), ("nemotron_3_nano", "gb300"), _NEMOTRON, _HYBRID),
    (("summary 26",), ("nemotron_3_nano", "h100"), _NEMOTRON, ("mamba",)),
    (_FIRST, ("deepseek", "gb200"), _DEEPSEEK, _ATTENTION),
    (("summary 26",), ("deepseek", "b300 (dgx"), _DEEPSEEK, _ATTENTION),
    (("summary 26.04.01",), ("deepseek", "b200 (dgx"), _DEEPSEEK, _ATTENTION),
    (_FIRST, ("qwen3_30b", "gb200"), _QWEN, _ROUTER),
    (("summary 26",), ("qwen3_30b", "b300 (dgx"), _QWEN, _ROUTER),
    (("summary 26.02|",), ("qwen3_30b", "b200 (dgx"), f"{_QWEN} until pull request 2499", _ROUTER),
    (("summary 26",), ("qwen3_30b", "b200 (dgx"), _QWEN, _ATTENTION),
    (("measurement notes",), ("cuda graph moe_router+moe_preprocess",), _QWEN, _ROUTER),
    (_FIRST, ("qwen3_235b", "gb300"), _QWEN, _ATTENTION),
    (_FIRST, ("gpt_oss_120b", "gb300"), _GPT_OSS, _ATTENTION),
    (("summary 26",), ("gpt_oss_120b", "b300 (dgx"), _GPT_OSS, _ATTENTION),
    *(
        (("summary 26",), ("llama3_70b", tuning, device), _LLAMA, ("mlp",))
        for tuning, devices in (("lora", ("gb200", "gb300", "b200 (dgx", "b300 (dgx")), ("sft", ("gb200", "gb300")))
        for device in devices
    ),
    (("summary 26",), ("llama3_70b", "sft", "h100", "fp8"), _LLAMA, ("mlp",)),
)

GRAPH_RECIPES: tuple[Recipe, ...] = tuple(
    Recipe(words=(source, *words), switches={"cuda_graphs": modules}, origin=f"{_CONFIGS}/{path}: cuda_graph_scope")
    for sources, words, path, modules in _SCOPES
    for source in sources
)
