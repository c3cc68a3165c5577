"""The weight matrices of a rank, by shape: what quantisation and the optimizer need to know of its parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

__all__ = ["Matrix", "elements", "hidden_matrices", "met_by_one_shard"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """Weight matrices of one shape on one rank, each as the optimizer is given it.

    Parameters
    ----------
    features_in, features_out : int
    count : int
        how many, one after the other
    hidden : bool
        of a linear layer between embedding and head: quantised by the recipes that quantise, orthogonalised by Muon
    dtype : str
        recipe whose operands its products have, see :mod:`clustersim.workload.module_dtypes`; empty: the job's
    joins : bool
        each reads the input of the matrix before it in the block: keys and values behind queries, gate and up. Some
        frameworks have such matrices as one tensor
    """

    features_in: int
    features_out: int
    count: int = 1
    hidden: bool = True
    dtype: str = ""
    joins: bool = False

    @property
    def elements(self) -> int:
        """Of one matrix."""
        return self.features_in * self.features_out


def elements(matrices: Iterable[Matrix]) -> int:
    """Elements of all of them."""
    return sum(_run(matrix) for matrix in matrices)


def hidden_matrices(matrices: Iterable[Matrix]) -> tuple[Matrix, ...]:
    """Those between embedding and head."""
    return tuple(matrix for matrix in matrices if matrix.hidden)


def met_by_one_shard(matrices: Sequence[Matrix], shards: int) -> tuple[Matrix, ...]:
    """The matrices that one of ``shards`` equal parts meets, wholly or in part: of the part that meets most elements.

    The matrices lie end to end in the order given and are cut without regard to where they begin, as the distributed
    optimizer of Megatron-LM does with its buffers.

    Parameters
    ----------
    matrices : Sequence[Matrix]
    shards : int
        from 1
    """
    total = elements(matrices)
    part = -(-total // shards)
    most: tuple[int, tuple[Matrix, ...]] = (0, ())
    first, start = 0, 0  # the run of equal matrices in which this part begins, and where that run begins
    for low in range(0, total, part or 1):
        while start + _run(matrices[first]) <= low:
            start += _run(matrices[first])
            first += 1
        met, index, at = [], first, start
        while index < len(matrices) and at < low + part:
            matrix = matrices[index]
            before = max(0, low - at) // matrix.elements
            behind = min(matrix.count, -(-(low + part - at) // matrix.elements))
            met.append(replace(matrix, count=behind - before))
            at += _run(matrix)
            index += 1
        most = max(most, (elements(met), tuple(met)), key=lambda found: found[0])
    return most[1]


def _run(matrix: Matrix) -> int:
    return matrix.elements * matrix.count
