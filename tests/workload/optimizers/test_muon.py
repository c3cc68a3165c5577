"""The products of Muon against an implementation that counts them; what it keeps and gathers against its papers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from clustersim.workload.matrix import Matrix, elements
from clustersim.workload.optimizers.elementwise import ADAMW
from clustersim.workload.optimizers.muon import MUON
from clustersim.workload.precision import RECIPES

BF16 = RECIPES["bf16"]


@dataclass
class Counter:
    """Multiplies matrices and counts their FLOP."""

    flops: int = 0

    def product(self, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        self.flops += 2 * left.shape[0] * left.shape[1] * right.shape[1]
        return left @ right


def newton_schulz(momentum: NDArray[np.float64], counter: Counter) -> NDArray[np.float64]:
    """Five iterations of the quintic of Jordan et al. 2024, on the side that makes the square matrices small."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = momentum.shape[0] > momentum.shape[1]
    x = momentum.T if tall else momentum
    x = x / np.linalg.norm(x)
    for _ in range(5):
        gram = counter.product(x, x.T)
        x = a * x + counter.product(b * gram + c * counter.product(gram, gram), x)
    return x.T if tall else x


def flops(*matrices: Matrix, shards: int = 1) -> int:
    parameters = elements(matrices)
    kernels = MUON.kernels(parameters, recipe=BF16, gradient_width=4, matrices=matrices, shards=shards)
    return sum(kernel.flops * kernel.count for kernel in kernels)


@pytest.mark.parametrize("shape", [(6, 10), (10, 6), (8, 8)])
def test_flop_of_an_implementation(shape: tuple[int, int]) -> None:
    counter = Counter()
    momentum = np.random.default_rng(0).normal(size=shape)
    singular = np.linalg.svd(newton_schulz(momentum, counter), compute_uv=False)
    assert singular.min() > 0.3  # the iteration that is counted is one that orthogonalises
    assert singular.max() < 1.3
    assert flops(Matrix(features_in=shape[0], features_out=shape[1])) == counter.flops


def test_closed_form_and_bound_of_the_paper() -> None:
    m, n = 40, 100
    assert flops(Matrix(features_in=n, features_out=m, count=3)) == 3 * (20 * m * m * n + 10 * m**3)
    assert flops(Matrix(features_in=n, features_out=m)) <= 5 * 6 * n * m * m


def test_hidden_matrices_keep_one_average_and_the_rest_two() -> None:
    matrices = [Matrix(features_in=10, features_out=30, count=2), Matrix(features_in=10, features_out=50, hidden=False)]
    parameters = 600 + 500 + 7
    assert MUON.state_nbytes(parameters, recipe=BF16, matrices=matrices) == 4 * 600 + 8 * 507
    assert MUON.state_nbytes(parameters, recipe=BF16, matrices=()) == ADAMW.state_nbytes(parameters, recipe=BF16)


def test_embedding_and_head_are_not_orthogonalised() -> None:
    head = Matrix(features_in=10, features_out=50, hidden=False)
    assert MUON.kernels(500, recipe=BF16, gradient_width=4, matrices=[head]) == ADAMW.kernels(
        500, recipe=BF16, gradient_width=4
    )
    assert MUON.gathered_nbytes([head], 4) == 0


def test_passes_over_memory() -> None:
    matrix = Matrix(features_in=64, features_out=32)
    kernels = MUON.kernels(2048, recipe=BF16, gradient_width=4, matrices=[matrix])
    passes = [kernel.nbytes for kernel in kernels if kernel.kind == "memory"]
    assert passes == [2048 * (4 + 2 * 4 + 2), 2048 * 3 * 2, 2048 * (2 + 2 * 4 + 2)]


class TestShards:
    MATRICES = (Matrix(features_in=64, features_out=64, count=8),)

    @pytest.mark.parametrize("shards", [1, 2, 4, 8])
    def test_even_shards_split_the_products(self, shards: int) -> None:
        assert flops(*self.MATRICES, shards=shards) * shards == flops(*self.MATRICES)
        assert MUON.gathered_nbytes(self.MATRICES, shards) == 0

    def test_ranks_that_share_a_matrix_repeat_its_products(self) -> None:
        assert flops(*self.MATRICES, shards=16) == flops(*self.MATRICES, shards=8)
        # A rank lacks half of its one matrix: 2 bytes an element, and 16/15 as an all-gather brings 15 parts of 16.
        assert MUON.gathered_nbytes(self.MATRICES, 16) == pytest.approx(2 * 64 * 64 // 2 * 16 / 15, abs=2)

    @pytest.mark.parametrize("shards", [2, 3, 7, 64, 1000])
    def test_gathers_at_most_what_gathering_the_weights_would(self, shards: int) -> None:
        # Moonlight, section 2.3: a fourth beside the 4 + 4 bytes of reducing gradients and gathering weights in fp32.
        assert 0 <= MUON.gathered_nbytes(self.MATRICES, shards) <= 2 * elements(self.MATRICES)
