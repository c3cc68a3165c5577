"""torchtitan: its own benchmarks, and those of others with it."""

from __future__ import annotations

from clustersim.study.steps.recipe import Recipe

__all__ = ["TITAN_RECIPES"]

_TITAN = "torchtitan pipelining_utils.py: as many micro-batches as stages"

TITAN_RECIPES: tuple[Recipe, ...] = (
    *(
        Recipe(
            words=("torchtitan benchmarks", words),
            switches={"tp_overlap": "ring"},
            origin="PyTorch torch/distributed/_symmetric_memory: products take and give tokens part by part",
        )
        for words in ("async tp", "asynctp")
    ),
    Recipe(
        words=("torchtitan benchmarks", "llama3.1_405b"),
        switches={"fsdp": False, "zero": 1},
        origin="torchtitan parallelize_llama.py: under a pipeline weights are not given back after the forward pass; "
        "PyTorch pipelining/stage.py: gradients are reduced with the last micro-batch",
    ),
    *(
        Recipe(
            words=("torchtitan benchmarks", "llama3.1_405b", words, "local batch 32"),
            columns={"micro_batch": 2, "vpp": 2},
            origin=f"{_TITAN}; assumed: two stages a rank",
        )
        for words in ("interleaved 1f1b", "int1f1b")
    ),
    Recipe(
        words=("torchtitan benchmarks", "llama3.1_405b", "local batch 32"),
        columns={"micro_batch": 4},
        origin=_TITAN,
    ),
    Recipe(
        words=("torchtitan benchmarks", "llama3.1_405b", "local batch 8"),
        columns={"micro_batch": 1},
        origin=_TITAN,
    ),
    Recipe(
        words=("torchtitan benchmarks", "70b-256-2d"),
        columns={
            "gpus": 256,
            "tp": 8,
            "pp": 1,
            "dp": 32,
            "micro_batch": 16,
            "global_batch": 512,
            "seq_len": 8192,
            "layers": 80,
            "hidden": 8192,
            "heads": 64,
            "kv_heads": 8,
            "ffn": 28672,
            "gated_mlp": 1,
            "vocab": 128256,
            "sharding": "FSDP2",
            "recompute": "full",
            "precision": "float8 linear",
        },
        origin="torchtitan benchmarks/llama3_h100_202412_torchtitan.md, table 4; the shape is Llama 3.1 70B's",
    ),
    Recipe(
        words=("awsome-distributed-training", "llama3_8b"),
        columns={"micro_batch": 1, "grad_accum": 1, "recompute": "selective (op)"},
        origin="torchtitan v0.1 llama3_8b.toml, batch_size 1, no accumulation, mode selective, option op",
    ),
    Recipe(
        words=("awsome-distributed-training", "with optimizations"),
        columns={"precision": "float8"},
        origin="awsome-distributed-training torchtitan/slurm/README.md: enable_float8_linear",
    ),
)
"""In the order in which they fill."""
