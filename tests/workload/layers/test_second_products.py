"""Selective checkpointing by operator: which products are done again, and what need not be kept then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import clustersim as cs
from clustersim.hardware.kernel import Kernel
from clustersim.workload.activations import kept_by_layer
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.layers.norm import middle_norm
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard

New = Callable[..., Shard]
OPERATORS = ("norm", "residual", "second_products", "activation")


def again(block: Block, *modules: str) -> list[Kernel]:
    parts = block.again(Recomputation.of("selective", modules=modules))
    ops = [piece.op for part in parts for piece in part.pieces]
    return [kernel for op in ops if isinstance(op, Compute) and op.recomputed for kernel in op.kernels]


def shapes(kernels: list[Kernel]) -> list[tuple[int, int, int]]:
    return [(k.m, k.n, k.k) for k in kernels if k.kind == "gemm"]


def test_keys_output_and_up_projection(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama)
    tokens, h = shard.tokens, llama.hidden
    assert shapes(again(attention(shard), "second_products")) == [(tokens, 4 * 32, h), (tokens, h, 8 * 32)]
    assert shapes(again(mlp(shard), "second_products")) == [(tokens, 688, h)]
    assert [k.form for k in again(attention(shard), "second_products") if k.kind == "memory"] == ["rope"]


def test_quantised_operands_are_counted_alike_and_cast_again(llama: Model, new_shard: New) -> None:
    plain, quantised = (again(attention(new_shard(llama, dtype=d)), "second_products") for d in ("bf16", "fp8_current"))
    assert shapes(plain) == shapes(quantised)
    assert len(quantised) == len(plain) + 2


def test_the_last_product_is_never_done_again(gpt: Model, new_shard: New) -> None:
    """The result of a layer's last product is read by a sum alone."""
    assert again(mlp(new_shard(gpt)), "second_products") == []


def test_what_a_layer_keeps(llama: Model, new_shard: New) -> None:
    """Its input, queries, values, the attention output and its statistics, and the gate."""
    shard = new_shard(llama)
    tokens = shard.tokens
    kept = 2 * tokens * (256 + 8 * 32 + 4 * 32 + 8 * 32 + 688) + 4 * tokens * 8
    recompute = Recomputation.of("selective", modules=OPERATORS)
    assert kept_by_layer(shard, recompute) == kept
    blocks = (attention(shard), middle_norm(shard), mlp(shard))
    assert sum(block.held(recompute) for block in blocks) == kept - shard.residual_nbytes


@pytest.mark.parametrize("dtype", ["bf16", "fp8_current"])
def test_more_work_and_less_memory(llama: Model, dtype: str) -> None:
    def run(*modules: str) -> cs.Run:
        plan = cs.ParallelPlan(recompute="selective" if modules else "none", recompute_modules=modules or ("core",))
        job = cs.training_step(
            replace(llama, max_seq_len=1024),
            plan,
            global_batch=2,
            micro_batch=2,
            seq_len=1024,
            dtype=dtype,
            num_devices=1,
        )
        return cs.simulate(cs.load_topology("dgx-h100", nodes=1), job)

    everything, some, products = (cs.summary(run(*m)) for m in ((), ("norm", "activation"), OPERATORS))
    assert everything["step_time_s"] < some["step_time_s"] < products["step_time_s"]
    assert everything["peak_memory_bytes"]["gpu"] > products["peak_memory_bytes"]["gpu"]
