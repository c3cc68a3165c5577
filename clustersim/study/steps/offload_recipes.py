"""Recipes of sources that publish steps with offloading."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["OFFLOAD_RECIPES"]

_ZENFLOW = (
    "blogs/zenflow-corebinding/README.md, zo_config.json, train_batch_size 8 on 2 GPUs, and DeepSpeedExamples "
    "training/DeepSpeed-ZenFlow/finetuning/finetune_llama.py, sequences padded to 512 tokens, nothing recomputed"
)
_INFINITY = "arXiv 2104.07857, its table of experiments, as remembered"
_BENCH = "DeepSpeedExamples benchmarks/deepcompile/run.sh, no accumulation, activation checkpoints"


def _infinity(name: str, hidden: int, layers: int, tp: int, micro_batch: int) -> Recipe:
    """A model of ZeRO-Infinity's figure: batches a GPU are of all ranks of a model-parallel group together here."""
    columns = {"layers": layers, "hidden": hidden, "heads": hidden // 128, "ffn": 4 * hidden, "vocab": 50_304}
    columns |= {"tp": tp, "pp": 1, "micro_batch": micro_batch, "seq_len": 1024}
    return Recipe(
        words=("zero-infinity (sc21)", name),
        columns={**columns, "grad_accum": 1, "recompute": "full"},
        switches={"offload_activations": True},
        origin=f"{_INFINITY}; assumed: heads of 128, GPT-2's vocabulary, sequences of 1,024, activations on the host",
    )


OFFLOAD_RECIPES: tuple[Recipe, ...] = (
    Recipe(
        words=("zenflow core binding", "prac"),
        instead={
            "model": "Qwen2.5-1.5B",
            "layers": 28,
            "hidden": 1536,
            "heads": 12,
            "kv_heads": 2,
            "ffn": 8960,
        },
        origin="blogs/zenflow-corebinding/README.md, practicality test: Qwen2.5-1.5B, as 3B does not fit under ZeRO-2",
    ),
    Recipe(
        words=("zenflow core binding",),
        columns={"micro_batch": 4, "global_batch": 8, "grad_accum": 1, "seq_len": 512, "recompute": "none"},
        origin=_ZENFLOW,
    ),
    Recipe(
        words=("deepcompile blog",),
        columns={"grad_accum": 1, "recompute": "full"},
        origin=_BENCH,
    ),
    Recipe(
        words=("megatron bridge skill/measurement notes", "hybriddeviceoptimizer"),
        columns={"gpus": 16},
        origin="Megatron-Bridge pull request 3062: two nodes of H100",
    ),
    _infinity("gpt 500b", 18 * 1024, 124, tp=4, micro_batch=28),
    _infinity("gpt 1t", 25 * 1024, 128, tp=4, micro_batch=20),
    _infinity("gpt 5t", 48 * 1024, 174, tp=4, micro_batch=12),
    _infinity("gpt 10t", 64 * 1024, 200, tp=4, micro_batch=8),
    _infinity("gpt 20t", 88 * 1024, 205, tp=8, micro_batch=10),
)
"""In the order in which they fill."""
