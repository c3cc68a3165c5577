"""What NeMo's benchmarks of 2025 captured as CUDA graphs, how they scaled fp8 and in what they summed gradients."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["NEMO_RECIPES"]

_CONFIGS = "NVIDIA/NeMo scripts/performance/recommended_model_configs"
_OTHERS = ("automodel", "bridge")
"""Frameworks that have NeMo in their name, or numbers of releases like its."""

_CAPTURED: tuple[tuple[str, tuple[str, ...]], ...] = (
    *(
        ("gb200", model)
        for model in (("175b",), ("llama", "8b"), ("mixtral", "8x7b"), ("nemotron", "15b"), ("nemotron", "340b", "fp8"))
    ),
    *(
        ("b200", model)
        for model in (("llama", "8b"), ("llama", "70b"), ("mixtral", "8x7b"), ("nemotron", "15b"), ("nemotron", "340b"))
    ),
)
"""GPU and model whose rows of the recommended configurations for pre-training have ``cuda_graphs`` 1, in fp8 and bf16
alike but where words say one; none of H100's dense models has."""

NEMO_RECIPES: tuple[Recipe, ...] = (
    *(
        Recipe(
            words=("nemo", "25.0", gpu, *model),
            without=(*_OTHERS, "fsdp", "lora", "sft", *(("gb200",) if gpu == "b200" else ())),
            switches={"launch": "cuda_graphs"},
            origin=f"{_CONFIGS}/model_configs_{gpu}.csv: cuda_graphs 1; helpers.py, set_cuda_graph_configs",
        )
        for gpu, model in _CAPTURED
    ),
    *(
        Recipe(
            words=("nemo", release, "fp8"),
            without=(*_OTHERS, "mxfp8"),
            instead={"precision": "fp8 current scaling"},
            origin="NeMo 25.04 performance summary: fp8 with scaling factors of the current step",
        )
        for release in ("25.04", "25.07")
    ),
    Recipe(
        words=("nemo ", "bf16"),
        without=(*_OTHERS, "mistral", "fp8", "float8", "fp4"),
        switches={"gradient_dtype": "fp32"},
        origin="NVIDIA/NeMo nemo/collections/llm/recipes/precision/mixed_precision.py, bf16_mixed: grad_reduce_in_fp32 "
        "True; scripts/performance/helpers.py sets it False with fp8 alone",
    ),
)
