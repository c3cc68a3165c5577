"""How tokens spread over experts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.faults import BadInput
from clustersim.workload.token_load import token_load


@given(
    st.lists(st.floats(0.01, 100), min_size=3, max_size=12),
    st.integers(1, 3),
    st.integers(1, 500),
)
def test_every_copy_goes_to_one_expert_and_a_token_to_each_once(popularity: list[float], k: int, rows: int) -> None:
    load = token_load([popularity], num_experts=len(popularity), top_k=k, ep=2)
    assert load is not None
    counts = load.counts(rows)
    assert (counts.sum(axis=1) == rows * k).all()
    assert (load.part <= 1 + 1e-9).all()
    assert (counts <= rows + 1).all()


def test_zipf_falls_with_the_exponent() -> None:
    load = token_load("zipf:1", num_experts=16, top_k=1, ep=1, seed=5)
    assert load is not None
    parts = np.sort(load.part[0])[::-1]
    assert np.allclose(parts * np.arange(1, 17), parts[0])
    even = token_load("zipf:0", num_experts=16, top_k=4, ep=1)
    assert even is not None
    assert np.allclose(even.part, 0.25)


def test_what_is_drawn_follows_from_the_seed() -> None:
    def drawn(seed: int) -> list[float]:
        load = token_load("zipf:1", num_experts=16, top_k=2, ep=1, seed=seed)
        assert load is not None
        return load.part[0].tolist()

    assert drawn(1) == drawn(1) != drawn(2)
    assert sorted(drawn(1)) == pytest.approx(sorted(drawn(2)))


def test_an_expert_that_every_token_meets_leaves_the_rest_to_others() -> None:
    load = token_load([[6, 1, 1]], num_experts=3, top_k=2, ep=1)
    assert load is not None
    assert load.part[0].tolist() == [1, 0.5, 0.5]


def test_a_table_has_a_row_for_all_ranks_or_one_each(tmp_path: Path) -> None:
    table = tmp_path / "popularity.csv"
    table.write_text("1,0\n0,1\n")
    load = token_load(str(table), num_experts=2, top_k=1, ep=2)
    assert load is not None
    assert load.counts(5).tolist() == [[5, 0], [0, 5]]
    with pytest.raises(BadInput, match="must be 1, or ep 4"):
        token_load(str(table), num_experts=2, top_k=1, ep=4)


@pytest.mark.parametrize(
    ("imbalance", "match"),
    [
        ("zipf", "zipf: with an exponent"),
        ("zipf:-1", "zipf: with an exponent"),
        ("unifrom", "must be uniform"),
        ("nowhere.csv", "must be a table of numbers"),
        ([[1, 2, 3]], "columns must be one for each of the 4 experts"),
        ([[1, 2, 3, -1]], "must be finite and not negative"),
        ([[1, 0, 0, 0]], "must be positive for at least the 2 experts"),
    ],
    ids=str,
)
def test_refusals(imbalance: str | list[list[float]], match: str) -> None:
    with pytest.raises(BadInput, match=match):
        token_load(imbalance, num_experts=4, top_k=2, ep=2)
