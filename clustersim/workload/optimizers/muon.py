"""Muon: the momentum of each hidden matrix is made nearly orthogonal by products of matrices before it is applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import gemm, memory_pass
from clustersim.workload.matrix import Matrix, elements, hidden_matrices, met_by_one_shard
from clustersim.workload.number_format import FORMATS, WIDTH
from clustersim.workload.optimizers.elementwise import ADAMW, Elementwise
from clustersim.workload.precision import Recipe

__all__ = ["MUON", "Muon"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Muon:
    """Momentum, orthogonalised by Newton-Schulz iterations; embedding, head, norms and biases go to another optimizer.

    Of an m × n matrix X with m ≤ n, an iteration computes A = X·Xᵀ, B = b·A + c·A·A and a·X + B·X::

        2·m²·n  +  2·m³  +  2·m²·n   FLOP

    so five iterations take 20·m²·n + 10·m³. No use is made of A and B being symmetric.

    Split over ranks, each rank gathers the momentum of the matrices that its shard meets, orthogonalises them whole and
    keeps its part, so ranks that share a matrix repeat each other's products. Tensor-parallel ranks orthogonalise their
    own part of each matrix.

    Parameters
    ----------
    name : str
    iterations : int
        of Newton-Schulz
    products : str
        dtype of the iterations and of what is gathered for them
    others : Elementwise
        optimizer of what is not a hidden matrix

    References
    ----------
    Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024 (at most 6·m²·n FLOP an iteration;
    five iterations in bf16). Liu et al., Muon is Scalable for LLM Training, 2025 (arXiv 2502.16982), section 2.3 and
    algorithm 1 (distributed; one average a parameter). Megatron-LM's ``--muon-tp-mode blockwise`` is the part that
    tensor-parallel ranks play here.
    """

    name: str = "muon"
    iterations: int = 5
    products: str = "bf16"
    others: Elementwise = ADAMW

    def state_nbytes(self, parameters: int, *, recipe: Recipe, matrices: Sequence[Matrix], shards: int = 1) -> int:
        """One average of each hidden element, and what the other optimizer keeps [B]."""
        hidden = elements(hidden_matrices(matrices))
        rest = self.others.state_nbytes(parameters - hidden, recipe=recipe, shards=shards)
        return WIDTH[recipe.moments] * -(-hidden // shards) + rest

    def kernels(
        self, parameters: int, *, recipe: Recipe, gradient_width: int, matrices: Sequence[Matrix], shards: int = 1
    ) -> tuple[Kernel, ...]:
        """Momentum with Nesterov's look-ahead, iterations over whole matrices, the step; and the other optimizer's."""
        hidden = hidden_matrices(matrices)
        share = -(-elements(hidden) // shards)
        width, moment = self._width, WIDTH[recipe.moments]
        copy = WIDTH[recipe.weights] if recipe.master else 0
        kernels: list[Kernel] = []
        if hidden:
            kernels.append(memory_pass((gradient_width + 2 * moment + width) * share, dtype="fp32"))
            shapes: Counter[tuple[int, int]] = Counter()
            for matrix in met_by_one_shard(hidden, shards):
                m, n = sorted((matrix.features_in, matrix.features_out))
                shapes[m, n] += matrix.count
            for (m, n), count in shapes.items():
                kernels += self._orthogonalise(m, n, count)
            kernels.append(memory_pass((width + 2 * recipe.updated_width + copy) * share, dtype="fp32"))
        rest = parameters - elements(hidden)
        if rest:
            kernels += self.others.kernels(rest, recipe=recipe, gradient_width=gradient_width, shards=shards)
        return tuple(kernels)

    def gathered_nbytes(self, matrices: Sequence[Matrix], shards: int) -> int:
        """Payload of an all-gather that brings a rank what it lacks of the matrices that its shard meets [B].

        Of W bytes gathered a rank receives W·(d − 1)/d, so W is what it lacks times d/(d − 1).
        """
        hidden = hidden_matrices(matrices)
        if shards == 1 or not hidden:
            return 0
        own = -(-elements(hidden) // shards)
        lacking = max(0, elements(met_by_one_shard(hidden, shards)) - own)
        return self._width * -(-lacking * shards // (shards - 1))

    @property
    def _width(self) -> int:
        return FORMATS[self.products].nbytes(1)

    def _orthogonalise(self, m: int, n: int, count: int) -> list[Kernel]:
        """Norm and scaling, then the three products; the sums are their epilogues, which read the addend."""
        scale = memory_pass(3 * self._width * m * n, dtype=self.products)
        gram = gemm(m, m, n, dtype=self.products)
        square = _adding(gemm(m, m, m, dtype=self.products), self._width * m * m)
        product = _adding(gemm(m, n, m, dtype=self.products), self._width * m * n)
        iterations = [replace(kernel, count=self.iterations * count) for kernel in (gram, square, product)]
        return [replace(scale, count=count), *iterations]


def _adding(product: Kernel, nbytes: int) -> Kernel:
    """A product to which a tensor of ``nbytes`` is added as it is written."""
    return replace(product, nbytes=product.nbytes + nbytes)


MUON = Muon()
