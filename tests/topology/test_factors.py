"""Ordered products of whole numbers."""

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from clustersim.topology.factors import factorizations, nearest_dims


def test_every_order_counts():
    assert list(factorizations(12, 2)) == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]
    assert len(list(factorizations(8, 3))) == 10  # three factors of two over three places


@given(number=st.integers(1, 400), wanted=st.lists(st.integers(-2, 30), min_size=1, max_size=3))
def test_the_nearest_is_a_factorisation_and_itself_when_it_fits(number, wanted):
    found = nearest_dims(number, wanted)
    assert prod(found) == number
    assert nearest_dims(prod(found), found) == found


def test_nearest_in_ratio():
    assert nearest_dims(64, (4, 4, 3)) == (4, 4, 4)
    assert nearest_dims(13, (4, 3)) == (13, 1)
