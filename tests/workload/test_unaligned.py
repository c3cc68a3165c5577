"""Products of unaligned operands on vector units: their kernels, and one that was measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.part import load_part
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.head import head
from clustersim.workload.layers.kernels import gemm, linear, linear_input_gradient, linear_weight_gradient
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard
from clustersim.workload.unaligned import on_units

NewShard = Callable[..., Shard]


def products(block: Block) -> list[Kernel]:
    ops = [piece.op for piece in (*block.forward, *block.backward) if isinstance(piece.op, Compute)]
    return [kernel for op in ops for kernel in op.kernels if kernel.kind == "gemm"]


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp8"])
@pytest.mark.parametrize("aligned", [True, False])
def test_only_unaligned_ones_of_16_bits_go_to_vector_units(dtype: str, aligned: bool) -> None:
    product = gemm(2048, 225, 2048, dtype=dtype, aligned=aligned)
    assert on_units(product, "matrix") == product
    moved = dtype in ("fp16", "bf16") and not aligned
    assert on_units(product, "vector") == (replace(product, dtype="fp32") if moved else product)


def test_heads_and_layers(gpt: Model, new_shard: NewShard) -> None:
    odd = new_shard(replace(gpt, head_dim=33), attention="unfused", unaligned="vector", seq_len=128)
    core = [kernel for kernel in products(attention(odd)) if kernel.batch > 1]
    assert [kernel.dtype for kernel in core] == ["fp32"] * 6
    plain = [kernel for kernel in products(attention(replace(odd, unaligned="matrix"))) if kernel.batch > 1]
    assert [kernel.nbytes for kernel in core] == [kernel.nbytes for kernel in plain]
    for make in (linear, linear_input_gradient, linear_weight_gradient):
        assert make(odd, 256, 100)[-1].dtype == "fp32"
        assert make(odd, 256, 104)[-1].dtype == odd.recipe.products


def test_a_head_is_padded(gpt: Model, new_shard: NewShard) -> None:
    odd = new_shard(replace(gpt, vocab=1001), unaligned="vector")
    assert {kernel.dtype for kernel in products(head(odd, tied_here=False))} == {odd.recipe.products}


def test_a_measured_one() -> None:
    """PyTorch issue 83272: 9.23 ms in bf16 with CUDA 11.6 on A100."""
    product = on_units(gemm(1024, 140, 1024, batch=384, dtype="bf16", aligned=False), "vector")
    assert kernel_cost(product, load_part("gpu", "a100-sxm-80gb")).seconds == pytest.approx(9.23e-3, rel=0.15)
