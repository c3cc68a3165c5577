"""Which matrices a shard meets, against a look at every element."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.matrix import Matrix, elements, hidden_matrices, met_by_one_shard

FEW = st.lists(
    st.builds(Matrix, features_in=st.integers(1, 4), features_out=st.integers(1, 4), count=st.integers(1, 3)),
    min_size=1,
    max_size=4,
)


def met_by_looking(matrices: list[Matrix], shards: int) -> int:
    """Elements of the matrices that the part with most of them meets."""
    owner = [
        (run, number)
        for run, matrix in enumerate(matrices)
        for number in range(matrix.count)
        for _ in range(matrix.elements)
    ]
    size = Counter(owner)
    part = -(-len(owner) // shards)
    return max(sum(size[m] for m in set(owner[low : low + part])) for low in range(0, len(owner), part))


@given(FEW, st.integers(1, 9))
def test_the_part_that_meets_most(matrices: list[Matrix], shards: int) -> None:
    met = met_by_one_shard(matrices, shards)
    assert elements(met) == met_by_looking(matrices, shards)
    assert -(-elements(matrices) // shards) <= elements(met) <= elements(matrices)


def test_one_shard_meets_all_and_many_meet_a_whole_matrix() -> None:
    matrices = (Matrix(features_in=8, features_out=4, count=3), Matrix(features_in=2, features_out=2))
    assert met_by_one_shard(matrices, 1) == matrices
    assert met_by_one_shard(matrices, 1000) == (Matrix(features_in=8, features_out=4),)
    assert met_by_one_shard((), 4) == ()


@pytest.mark.parametrize("shards", [2, 4])
def test_shards_that_end_where_matrices_end_meet_no_more_than_their_own(shards: int) -> None:
    matrices = [Matrix(features_in=4, features_out=4, count=8)]
    assert elements(met_by_one_shard(matrices, shards)) == elements(matrices) // shards


def test_embedding_and_head_are_not_hidden() -> None:
    layer, head = Matrix(features_in=2, features_out=3), Matrix(features_in=2, features_out=9, hidden=False)
    assert hidden_matrices([layer, head]) == (layer,)
    assert elements([layer, head]) == 6 + 18
