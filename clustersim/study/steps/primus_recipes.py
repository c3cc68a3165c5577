"""Primus: AMD's trainer, with Megatron-LM behind it."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["PRIMUS_RECIPES"]

_PRIMUS = "Primus examples/megatron/configs"

PRIMUS_RECIPES: tuple[Recipe, ...] = (
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
