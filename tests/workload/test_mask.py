"""Masks against a count cell by cell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.mask import Mask, Span


def counted(mask: Mask, queries: list[Span], keys: list[Span]) -> int:
    """Twice the area, a cell a pair of tokens; the diagonals that bound what is seen go through the middle of cells."""
    number = np.repeat(np.arange(len(mask.documents)), mask.documents)
    q, k = np.indices((len(number), len(number)))
    seen = np.full(q.shape, 2)
    if mask.causal:
        seen = np.sign(q - k) + 1
        if mask.window is not None:
            seen -= np.sign(q - mask.window - k) + 1
    seen[number[q] != number[k]] = 0
    chosen = [np.isin(np.arange(len(number)), [t for span in spans for t in range(*span)]) for spans in (queries, keys)]
    return int(seen[np.ix_(*chosen)].sum())


@st.composite
def spans(draw: st.DrawFn, num_tokens: int) -> list[Span]:
    ends = sorted(draw(st.lists(st.integers(0, num_tokens), min_size=4, max_size=4)))
    return [(ends[0], ends[1]), (ends[2], ends[3])]


@given(st.data())
def test_pairs_are_counted_exactly(data: st.DataObject) -> None:
    documents = tuple(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    causal = data.draw(st.booleans())
    window = data.draw(st.sampled_from([None, 1, 3, 8])) if causal else None
    mask = Mask(documents=documents, causal=causal, window=window)
    queries, keys = data.draw(spans(mask.num_tokens)), data.draw(spans(mask.num_tokens))
    assert mask.pairs2(queries, keys) == counted(mask, queries, keys)


def test_whole_sequences() -> None:
    assert Mask(documents=(64,)).pairs2() == 64**2
    assert Mask(documents=(64,), causal=False).pairs2() == 2 * 64**2
    assert Mask(documents=(64,), window=16).pairs2() == 2 * 64 * 16 - 16**2
    assert Mask(documents=(32, 16, 16)).pairs2() == 32**2 + 2 * 16**2


def test_nothing_is_empty() -> None:
    with pytest.raises(ValueError, match="documents"):
        Mask(documents=(4, 0))
    with pytest.raises(ValueError, match="window"):
        Mask(documents=(4,), window=0)
