from __future__ import annotations

from clustersim.workload.matrix import Matrix
from clustersim.workload.optimizers.adafactor import ADAFACTOR
from clustersim.workload.optimizers.elementwise import ADAM
from clustersim.workload.precision import RECIPES

BF16 = RECIPES["bf16"]


def state(width: int) -> int:
    matrix = Matrix(features_in=width, features_out=width)
    return ADAFACTOR.state_nbytes(width * width, recipe=BF16, matrices=[matrix])


def test_a_matrix_keeps_its_rows_and_columns() -> None:
    matrices = [Matrix(features_in=30, features_out=10, count=2), Matrix(features_in=7, features_out=3, hidden=False)]
    vectors = 5
    parameters = 2 * 300 + 21 + vectors
    kept = ADAFACTOR.state_nbytes(parameters, recipe=BF16, matrices=matrices)
    assert kept == 4 * (2 * (30 + 10) + (7 + 3) + vectors)
    assert ADAFACTOR.state_nbytes(parameters, recipe=BF16, matrices=matrices, shards=2) == -(-95 // 2) * 4


def test_state_grows_with_the_root_of_the_parameters() -> None:
    assert state(2000) == 2 * state(1000)
    assert state(1000) < ADAM.state_nbytes(1000 * 1000, recipe=BF16) / 500


def test_an_update_passes_three_times_over_gradient_and_weight() -> None:
    matrix = Matrix(features_in=40, features_out=25)
    (kernel,) = ADAFACTOR.kernels(1000, recipe=BF16, gradient_width=2, matrices=[matrix])
    assert kernel.nbytes == 1000 * (3 * 2 + 3 * 4 + 2) + 2 * 4 * (40 + 25)
    assert ADAFACTOR.gathered_nbytes([matrix], 8) == 0
