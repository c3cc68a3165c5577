import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import ideal, interleaved_zero_bubble, loop, zb_h1

TIME = st.integers(1, 9)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), TIME, TIME, TIME)
def test_a_share_of_the_bubble_of_h1(p: int, v: int, groups: int, f: int, i: int, w: int) -> None:
    m = p * groups
    costs = {"forward": f, "backward_input": i, "backward_weight": w}
    found = ideal(interleaved_zero_bubble(p, v, m), loop(p, v), **costs)
    # As for ZB-H1, in chunks of 1/v of a stage.
    assert max(found.bubbles) == (p - 1) * (f + i - min(f, w))
    assert max(found.peaks(after=1)) == min(m, p) * v


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(1, 3))
def test_with_one_chunk_it_is_h1(p: int, groups: int) -> None:
    played = [
        ideal(schedule(p, 1, p * groups), loop(p, 1), forward=1, backward_input=1, backward_weight=1)
        for schedule in (interleaved_zero_bubble, zb_h1)
    ]
    assert played[0].bubbles == played[1].bubbles
    assert played[0].peaks(after=1) == played[1].peaks(after=1)


def test_refuses_what_does_not_divide() -> None:
    with pytest.raises(ValueError, match="multiple of the 4 stages"):
        interleaved_zero_bubble(4, 2, 6)
