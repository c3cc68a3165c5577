from collections.abc import Callable

import pytest

from clustersim.workload.layers.kernels import (
    gemm,
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_cast,
)
from clustersim.workload.matrix import Matrix
from clustersim.workload.model import Model
from clustersim.workload.precision import RECIPES
from clustersim.workload.shard import Shard


def test_gemm_counts_each_operand_once() -> None:
    kernel = gemm(3, 5, 7, dtype="bf16", batch=2)
    assert kernel.flops == 2 * 2 * 3 * 5 * 7
    assert kernel.nbytes == 2 * 2 * (3 * 7 + 7 * 5 + 3 * 5)
    assert (kernel.m, kernel.n, kernel.k, kernel.batch) == (3, 5, 7, 2)


def test_the_three_products_of_a_linear_layer(gpt: Model, new_shard: Callable[..., Shard]) -> None:
    shard = new_shard(gpt)
    products = [
        k for product in (linear, linear_input_gradient, linear_weight_gradient) for k in product(shard, 10, 30)
    ]
    assert [(k.m, k.n, k.k) for k in products] == [(256, 30, 10), (256, 10, 30), (10, 30, 256)]
    assert {k.flops for k in products} == {2 * 256 * 10 * 30}


def test_the_weight_gradient_is_read_and_written_in_its_own_dtype(gpt: Model, new_shard: Callable[..., Shard]) -> None:
    shards = [new_shard(gpt, gradient_dtype=g) for g in ("fp32", "bf16")]
    wide, narrow = (k.nbytes for shard in shards for k in linear_weight_gradient(shard, 10, 30))
    assert wide - narrow == 2 * 2 * 10 * 30
    assert narrow == 2 * 256 * (10 + 30) + 2 * 2 * 10 * 30


def test_a_pass_over_memory_has_no_flop() -> None:
    assert (memory_pass(12, dtype="fp32").flops, memory_pass(12, dtype="fp32").nbytes) == (0, 12)


class TestQuantised:
    ROWS, IN, OUT = 256, 128, 384

    @pytest.mark.parametrize(
        ("recipe", "units", "operand", "weight", "reads"),
        [
            ("fp8", "fp8", 1, 1, 2),
            ("fp8_current", "fp8", 1, 1, 4),
            ("fp8_rowwise", "fp8", 1, 1, 6),
            ("fp8_blockwise", "fp8", 1 + 4 / 128, 1 + 4 / 128**2, 2),
            ("mxfp8", "mxfp8", 33 / 32, 33 / 32, 2),
            ("nvfp4", "nvfp4", 9 / 16, 9 / 16, 4),
        ],
    )
    def test_casts_and_products(
        self,
        gpt: Model,
        new_shard: Callable[..., Shard],
        recipe: str,
        units: str,
        operand: float,
        weight: float,
        reads: int,
    ) -> None:
        shard, x, w, y = new_shard(gpt, dtype=recipe), self.ROWS * self.IN, self.IN * self.OUT, self.ROWS * self.OUT
        forward = linear(shard, self.IN, self.OUT)
        assert [k.kind for k in forward] == ["memory", "gemm"]
        assert [k.nbytes for k in forward] == [(reads + 2 * operand) * x, operand * x + weight * w + 2 * y]
        assert [k.dtype for k in forward] == ["bf16", units]

        backward = linear_input_gradient(shard, self.IN, self.OUT)
        assert [k.nbytes for k in backward] == [(reads + 2 * operand) * y, operand * y + weight * w + 2 * x]

        (weight_gradient,) = linear_weight_gradient(shard, self.IN, self.OUT)
        assert weight_gradient.nbytes == operand * (x + y) + 2 * 4 * w
        assert weight_gradient.dtype == units

    def test_flop_are_those_of_bf16(self, gpt: Model, new_shard: Callable[..., Shard]) -> None:
        shard, plain = new_shard(gpt, dtype="nvfp4"), new_shard(gpt)
        for product in (linear, linear_input_gradient, linear_weight_gradient):
            narrow, wide = product(shard, self.IN, self.OUT), product(plain, self.IN, self.OUT)
            assert sum(k.flops for k in narrow) == sum(k.flops for k in wide)

    def test_what_stays_in_bf16_is_as_without(self, gpt: Model, new_shard: Callable[..., Shard]) -> None:
        shard, plain = new_shard(gpt, dtype="fp8").unquantised, new_shard(gpt)
        for product in (linear, linear_input_gradient, linear_weight_gradient):
            assert product(shard, self.IN, self.OUT) == product(plain, self.IN, self.OUT)


def test_tf32_multiplies_fp32_tensors_on_other_units(gpt: Model, new_shard: Callable[..., Shard]) -> None:
    (fp32,), (tf32,) = (linear(new_shard(gpt, dtype=dtype), 10, 30) for dtype in ("fp32", "tf32"))
    assert (fp32.dtype, tf32.dtype) == ("fp32", "tf32")
    assert fp32.nbytes == tf32.nbytes == 4 * (256 * 10 + 10 * 30 + 256 * 30)


def test_weights_are_cast_only_where_a_recipe_quantises() -> None:
    hidden, head = (
        Matrix(features_in=32, features_out=64, count=3),
        Matrix(features_in=32, features_out=9, hidden=False),
    )
    (cast,) = weight_cast(RECIPES["mxfp8"], [hidden, head])
    assert cast.nbytes == 3 * 32 * 64 * (2 + 2 * 33 / 32)
    assert weight_cast(RECIPES["bf16"], [hidden]) == weight_cast(RECIPES["mxfp8"], [head]) == ()
