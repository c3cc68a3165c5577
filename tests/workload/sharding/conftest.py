"""A small model, its steps, and what their programs move and hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.op import Collective

MODEL = cs.Model(
    name="sharded",
    num_layers=6,
    hidden=512,
    num_heads=8,
    num_kv_heads=8,
    head_dim=64,
    ffn_hidden=2048,
    gated_mlp=False,
    vocab=4096,
    max_seq_len=256,
    norm="layernorm",
    positions="rope",
    tied_embeddings=False,
)


@pytest.fixture
def model() -> cs.Model:
    """Six layers; parameters of layers and of the whole are multiples of 32."""
    return MODEL


@pytest.fixture
def new_step() -> Callable[..., cs.Job]:
    """A step on 16 ranks of two micro-batches each, unless told otherwise; gradients of 2 bytes."""

    def build(*, num_devices: int = 16, micro_batches: int = 2, seq_len: int = 256, **plan: Any) -> cs.Job:
        settings = cs.ParallelPlan(**{"gradient_dtype": "bf16", **plan})
        replicas = num_devices // (settings.tp * settings.pp)
        batch: dict[str, Any] = {"global_batch": replicas * micro_batches, "micro_batch": 1, "seq_len": seq_len}
        return cs.training_step(MODEL, settings, num_devices=num_devices, **batch)

    return build


@pytest.fixture
def payloads() -> Callable[[cs.Job], dict[tuple[str, str], int]]:
    """(slot, kind) -> bytes that the collectives of data parallelism in a job's first program are called with."""

    def count(job: cs.Job) -> dict[tuple[str, str], int]:
        arrays = job.programs[0].arrays()
        found: Counter[tuple[str, str]] = Counter()
        for number in arrays.op.tolist():
            op = arrays.ops[number]
            if isinstance(op, Collective) and op.axis == "dp":
                found[op.slot, op.kind] += op.nbytes
        return dict(found)

    return count
