from collections.abc import Callable

from clustersim.workload.layers.kernels import (
    gemm,
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
)
from clustersim.workload.model import Model
from clustersim.workload.shard import Shard


def test_gemm_counts_each_operand_once() -> None:
    kernel = gemm(3, 5, 7, dtype="bf16", batch=2)
    assert kernel.flops == 2 * 2 * 3 * 5 * 7
    assert kernel.nbytes == 2 * 2 * (3 * 7 + 7 * 5 + 3 * 5)
    assert (kernel.m, kernel.n, kernel.k, kernel.batch) == (3, 5, 7, 2)


def test_the_three_products_of_a_linear_layer(gpt: Model, new_shard: Callable[..., Shard]) -> None:
    shard = new_shard(gpt)
    products = [product(shard, 10, 30)[0] for product in (linear, linear_input_gradient, linear_weight_gradient)]
    assert [(k.m, k.n, k.k) for k in products] == [(256, 30, 10), (256, 10, 30), (10, 30, 256)]
    assert {k.flops for k in products} == {2 * 256 * 10 * 30}


def test_the_weight_gradient_is_read_and_written_in_its_own_dtype(gpt: Model, new_shard: Callable[..., Shard]) -> None:
    wide, narrow = (linear_weight_gradient(new_shard(gpt, gradient_dtype=g), 10, 30)[0].nbytes for g in ("fp32", "bf16"))
    assert wide - narrow == 2 * 2 * 10 * 30
    assert narrow == 2 * 256 * (10 + 30) + 2 * 2 * 10 * 30


def test_a_pass_over_memory_has_no_flop() -> None:
    assert (memory_pass(12, dtype="fp32").flops, memory_pass(12, dtype="fp32").nbytes) == (0, 12)
