import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.stages import describe, split


@given(st.integers(1, 200), st.integers(1, 202))
def test_every_layer_once_in_order_and_as_even_as_possible(num_layers: int, stages: int) -> None:
    if num_layers + 2 < stages:
        with pytest.raises(ValueError, match=f"at most {num_layers + 2}"):
            split(num_layers, stages)
        return
    chunks = split(num_layers, stages)
    assert [n for c in chunks for n in range(c.first_layer, c.first_layer + c.num_layers)] == list(range(num_layers))
    assert [c.has_embedding for c in chunks] == [True] + [False] * (stages - 1)
    assert [c.has_head for c in chunks] == [False] * (stages - 1) + [True]
    places = [c.num_layers + (num_layers % stages != 0) * (c.has_embedding + c.has_head) for c in chunks]
    assert max(places) - min(places) <= 1


def test_llama_3_405b() -> None:
    # The Llama 3 Herd of Models, section 3.3.2: one layer less on the first and on the last stage.
    assert describe(split(126, 16)) == "7, 14 x 8, 7"
    assert describe(split(126, 128)) == "0, 126 x 1, 0"


def test_bloom_176b() -> None:
    # 70 layers on 12 stages, embedding and head as one layer each (BigScience, training notes).
    assert describe(split(70, 12)) == "5, 10 x 6, 5"


def test_even_layers_stay_even() -> None:
    assert describe(split(96, 8)) == "8 x 12"


def test_what_is_left_over_goes_to_late_stages_but_the_head_s() -> None:
    assert [c.num_layers for c in split(9, 4)] == [2, 3, 3, 1]
    assert [c.num_layers for c in split(7, 4)] == [1, 2, 3, 1]
