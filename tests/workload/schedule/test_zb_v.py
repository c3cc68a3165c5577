import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import ideal, vee, zb_v


def test_two_stages_by_hand() -> None:
    rows = [" ".join(map(str, row)) for row in zb_v(2, 2, 3)]
    assert rows == [
        "F0.0 F1.0 F2.0 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 I0.0 W0.0 F2.1 I2.1 W2.1 I1.0 W1.0 I2.0 W2.0",
        "F0.0 F0.1 F1.0 F1.1 I0.1 W0.1 F2.0 I0.0 W0.0 F2.1 I1.1 W1.1 I1.0 I2.1 I2.0 W1.0 W2.1 W2.0",
    ]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 9), st.integers(0, 20))
def test_no_bubble_in_the_memory_of_1f1b(p: int, more: int) -> None:
    m = 2 * p - 1 + more
    found = ideal(zb_v(p, 2, m), vee(p), forward=1, backward_input=1, backward_weight=1)
    assert found.bubbles == (0,) * p
    # A chunk is half of a stage: 2·p of them are the p micro-batches of 1F1B's first stage.
    assert max(found.peaks(after=1)) <= 2 * p


@pytest.mark.parametrize(("p", "m"), [(4, 1), (4, 3), (4, 6), (8, 5)])
def test_fewer_micro_batches_leave_gaps(p: int, m: int) -> None:
    found = ideal(zb_v(p, 2, m), vee(p), forward=1, backward_input=1, backward_weight=1)
    assert max(found.bubbles) > 0
    assert max(found.peaks(after=1)) <= min(2 * p, 2 * m)
