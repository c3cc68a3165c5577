import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import bidirectional, dualpipe, dualpipev, ideal, units_of, vee

TIME = st.integers(1, 9)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 4), st.integers(0, 6), TIME, TIME, TIME, st.integers(0, 9))
def test_the_published_bubble_and_memory(pairs: int, more: int, f: int, i: int, w: int, hidden: int) -> None:
    pair = f + i + w - hidden
    assume(w <= min(f, i) and pair >= max(f, i + w))
    p, m = 2 * pairs, 4 * pairs + 2 * more
    costs = {"forward": f, "backward_input": i, "backward_weight": w, "overlapped": pair}
    found = ideal(dualpipe(p, 2, m), bidirectional(p), **costs)
    # DeepSeek-V3, table 2: (PP/2 - 1)(F&B + B - 3W), PP + 1 activations, 2 times the parameters.
    published = (p // 2 - 1) * (pair + i + w - 3 * w)
    idle = max(found.makespan - busy for busy in found.busy)
    assert idle == published + ((p // 2 - 1) * (f - i) if i <= f else -min((p // 2 - 1) * (i - f), f))
    assert found.peaks(after=1) == (p + 1,) * p
    half = ideal(dualpipev(p // 2, 2, m // 2), vee(p // 2), **costs)
    assert half.makespan == found.makespan


def test_micro_batches_go_one_way_each() -> None:
    for row in dualpipe(4, 2, 10):
        ways = {(unit.micro_batch, unit.chunk) for unit in units_of(row)}
        assert ways == {(j, 0) for j in range(5)} | {(j, 1) for j in range(5, 10)}


@pytest.mark.parametrize(("p", "m"), [(3, 8), (4, 9), (4, 6)])
def test_what_it_refuses(p: int, m: int) -> None:
    with pytest.raises(ValueError, match="must be even and at least"):
        dualpipe(p, 2, m)
