"""Bytes of the formats and of casts into them, against the papers and guides that define them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.workload.number_format import FORMATS
from clustersim.workload.precision import RECIPES

ELEMENTS = 128 * 128 * 16


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("fp32", 32),
        ("tf32", 32),
        ("bf16", 16),
        ("fp8", 8),
        ("fp8 1x128", 8 + 32 / 128),
        ("fp8 128x128", 8 + 32 / 128**2),
        ("mxfp8", 8 + 8 / 32),
        ("nvfp4", 4 + 8 / 16),
    ],
)
def test_bits_an_element_with_scales(name: str, bits: float) -> None:
    assert FORMATS[name].nbytes(ELEMENTS) * 8 == bits * ELEMENTS


@pytest.mark.parametrize("name", FORMATS)
def test_a_tensor_in_parts_takes_at_least_as_much(name: str) -> None:
    form = FORMATS[name]
    assert form.nbytes(0) == 0
    for elements in (2, 31, 129, 1000):
        assert 2 * form.nbytes(elements) >= form.nbytes(2 * elements) > form.nbytes(elements)


def test_a_cast_reads_16_bits_and_writes_two_copies() -> None:
    delayed, current = RECIPES["fp8"].quantisation, RECIPES["fp8_current"].quantisation
    assert delayed is not None
    assert current is not None
    assert delayed.cast_nbytes(ELEMENTS, width=2) == (2 + 2 * 1) * ELEMENTS
    assert current.cast_nbytes(ELEMENTS, width=2) == (2 + 2 + 2 * 1) * ELEMENTS
    assert replace(delayed, copies=1).cast_nbytes(ELEMENTS, width=2) == (2 + 1) * ELEMENTS


def test_rows_and_columns_are_cast_apart() -> None:
    rowwise = RECIPES["fp8_rowwise"].quantisation
    assert rowwise is not None
    # a row: read and written; a column: read for its largest value, read and written
    assert rowwise.cast_nbytes(ELEMENTS, width=2) == (2 + 1 + 2 + 2 + 1) * ELEMENTS
    compiled = rowwise.cast_nbytes(ELEMENTS, width=2, compiled=True)
    assert compiled == pytest.approx((2 + 1 + 2 + (2 + 1) * 2.1 / 0.65) * ELEMENTS)
    assert not rowwise.promoted
    assert not rowwise.one_scale


def test_a_compiler_turns_a_tensor_more_slowly_than_it_casts_it() -> None:
    current = RECIPES["fp8_current"].quantisation
    assert current is not None
    assert current.cast_nbytes(ELEMENTS, width=2, compiled=True) == pytest.approx((2 + 4 * 2.2 / 1.4) * ELEMENTS)
    once = replace(current, copies=1)
    assert once.cast_nbytes(ELEMENTS, width=2, compiled=True) == once.cast_nbytes(ELEMENTS, width=2)


@pytest.mark.parametrize("ranks", [2, 8])
def test_what_is_gathered_is_cast_in_parts_and_turned_whole(ranks: int) -> None:
    current = RECIPES["fp8_current"].quantisation
    assert current is not None
    found = current.gathered_cast_nbytes(ELEMENTS, width=2, ranks=ranks)
    assert found == (2 + 2 + 1) * ELEMENTS // ranks + 2 * ELEMENTS
    assert found < current.cast_nbytes(ELEMENTS, width=2)
    assert current.gathered_cast_nbytes(ELEMENTS, width=2, ranks=ranks, compiled=True) > found


def test_weights_of_blockwise_fp8_have_coarser_scales_than_activations() -> None:
    blockwise = RECIPES["fp8_blockwise"].quantisation
    assert blockwise is not None
    assert blockwise.weight_copies_nbytes(128 * 128) == 2 * (128 * 128 + 4)
    assert blockwise.weight_cast_nbytes(128 * 128, width=2) == (2 + 2) * 128 * 128 + 2 * 4
    assert blockwise.activations.nbytes(128 * 128) == 128 * 128 + 4 * 128
