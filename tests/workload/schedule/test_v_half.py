from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import ideal, v_half, vee


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 10), st.integers(0, 15))
def test_half_the_activations(p: int, more: int) -> None:
    found = ideal(v_half(p, 2, 2 * p + more), vee(p), forward=1, backward_input=1, backward_weight=1)
    assert max(found.peaks(after=1)) == 2 * ((p + 2) // 2)
    assert max(found.bubbles) == 3.5 * p - (3.5 if p % 2 else 4)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 8), st.integers(1, 20))
def test_any_number_of_micro_batches_ends(p: int, m: int) -> None:
    found = ideal(v_half(p, 2, m), vee(p), forward=3, backward_input=4, backward_weight=2)
    assert found.busy == (2 * 9 * m,) * p
    assert max(found.peaks(after=1)) <= max(3, 2 * ((p + 2) // 2))
