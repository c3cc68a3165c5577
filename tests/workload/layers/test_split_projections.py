"""Queries, keys and values, and gate and up, as products of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

New = Callable[..., Shard]


def kernels(block: Block, way: str, kind: str) -> list[Kernel]:
    ops = [piece.op for piece in getattr(block, way)]
    return [k for op in ops if isinstance(op, Compute) for k in op.kernels if k.kind == kind]


def columns(block: Block, way: str) -> list[tuple[int, int, int]]:
    return [(k.m, k.n, k.k) for k in kernels(block, way, "gemm")]


def test_each_matrix_is_a_product_of_its_own(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama, splits_projections=True)
    t, h, q, k, f = shard.tokens, llama.hidden, shard.query_features, shard.key_features, shard.ffn
    assert columns(attention(shard), "forward") == [(t, q, h), (t, k, h), (t, k, h), (t, h, q)]
    assert columns(mlp(shard), "forward") == [(t, f, h), (t, f, h), (t, h, f)]
    inputs = [(t, h, f), (t, h, f)]
    assert columns(mlp(shard), "backward") == [(t, f, h), (f, h, t), *inputs, (h, f, t), (h, f, t)]


@pytest.mark.parametrize("dtype", ["bf16", "fp8_current"])
@pytest.mark.parametrize(("maker", "others"), [(attention, 2), (mlp, 1)])
def test_work_is_the_same_and_gradients_of_the_input_are_summed(
    llama: Model, new_shard: New, maker: Callable[[Shard], Block], others: int, dtype: str
) -> None:
    whole = new_shard(llama, dtype=dtype)
    apart, compiled = (replace(whole, splits_projections=True, fusion=f) for f in (whole.fusion, _compiled(whole)))
    for way in ("forward", "backward"):
        flops = {sum(k.flops for k in kernels(maker(s), way, "gemm")) for s in (whole, apart)}
        assert len(flops) == 1
        passes = [sum(k.nbytes for k in kernels(maker(s), way, "memory")) for s in (whole, apart)]
        # two are read and one is written for each that is added
        assert passes[1] - passes[0] == (way == "backward") * others * 3 * whole.residual_nbytes
    plain = replace(compiled, splits_projections=False)
    read = [sum(k.nbytes for k in kernels(maker(s), "backward", "memory")) for s in (plain, compiled)]
    # casts of two products are rounded to whole bytes twice
    assert read[1] - read[0] == pytest.approx(others * whole.residual_nbytes, abs=others)


def test_a_matrix_without_company_changes_nothing(gpt: Model, new_shard: New) -> None:
    assert mlp(new_shard(gpt, splits_projections=True)) == mlp(new_shard(gpt))


def test_a_sum_of_products_is_reduced_whole(llama: Model) -> None:
    """PyTorch's micro_pipeline_tp fuses a reduce-scatter with a product before it, not with a sum."""

    def names(*, split: bool) -> set[str]:
        plan = ParallelPlan(tp=2, overlap_tp=False, tp_overlap="ring", split_projections=split)
        job = training_step(llama, plan, global_batch=2, micro_batch=2, seq_len=256, dtype="bf16", num_devices=2)
        return {op.name for op in job.programs[0].arrays().ops}

    whole, apart = names(split=False), names(split=True)
    for kind in ("attention", "mlp"):
        assert f"exchange {kind} input gradient" in whole - apart
        assert f"reduce-scatter {kind} input gradient" in apart - whole
        assert {f"exchange {kind} output", f"exchange {kind} input"} <= whole & apart


def _compiled(shard: Shard) -> tuple[str, ...]:
    return (*shard.fusion, "residual_norm")
