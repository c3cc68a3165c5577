import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import Overlapped, dualpipev, ideal, vee

TIME = st.integers(1, 9)


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(0, 9), TIME, TIME, TIME, st.integers(0, 9))
def test_the_published_bubble_and_memory(p: int, more: int, f: int, i: int, w: int, hidden: int) -> None:
    pair = f + i + w - hidden
    assume(w <= min(f, i) and pair >= max(f, i + w))
    m = 2 * p + more
    found = ideal(dualpipev(p, 2, m), vee(p), forward=f, backward_input=i, backward_weight=w, overlapped=pair)
    # DeepSeek-V3, table 2, and the table of its repository: PP is 2·p, B is I + W.
    published = (p - 1) * (pair + i + w - 3 * w)
    idle = max(found.makespan - busy for busy in found.busy)
    assert idle == published + ((p - 1) * (f - i) if i <= f else -min((p - 1) * (i - f), f))
    assert found.peaks(after=1) == (2 * p + 1,) * p


def test_every_steady_forward_is_overlapped() -> None:
    for p, m in ((1, 2), (3, 6), (4, 20)):
        for stage, row in enumerate(dualpipev(p, 2, m)):
            pairs = sum(isinstance(entry, Overlapped) for entry in row)
            alone = int(stage == p - 1)
            assert pairs == 2 * (m - 2 * p + stage + 1) + (p - 1 - stage) - alone


def test_it_refuses_too_few_micro_batches() -> None:
    with pytest.raises(ValueError, match="num_micro_batches: 7 must be at least 8"):
        dualpipev(4, 2, 7)
