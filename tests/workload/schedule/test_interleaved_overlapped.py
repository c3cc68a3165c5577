import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import check, ideal, interleaved, interleaved_overlapped, loop
from clustersim.workload.schedule.unit import units_of

TIME = st.integers(1, 9)


def test_with_one_stage_each_backward_runs_beside_the_next_forward() -> None:
    (row,) = interleaved_overlapped(1, 1, 3)
    assert list(map(str, row)) == ["F0.0", "F1.0+B0.0", "F2.0+B1.0", "B2.0"]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 4))
def test_it_runs_and_pairs_all_but_the_first_and_last(p: int, v: int, groups: int) -> None:
    m = groups * p
    table = interleaved_overlapped(p, v, m)
    assert check(table, num_stages=p, num_virtual=v, num_micro_batches=m) == ()
    for stage, row in enumerate(table):
        alone = min(2 * (p - 1 - stage) + (v - 1) * p + 1, m * v)
        assert len(row) == m * v + alone
        assert len(list(units_of(row))) == 2 * m * v


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(2, 4), TIME, TIME)
def test_it_holds_one_chunk_more_and_gains_what_a_pair_hides(p: int, v: int, groups: int, f: int, b: int) -> None:
    m = groups * p
    costs = {"forward": f, "backward_input": b, "backward_weight": 0}
    plain = ideal(interleaved(p, v, m), loop(p, v), **costs)
    pairs = ideal(interleaved_overlapped(p, v, m), loop(p, v), overlapped=max(f, b), **costs)
    assert max(pairs.peaks(after=0)) <= max(plain.peaks(after=0)) + 1
    assert pairs.makespan <= plain.makespan + f + b


def test_refuses_what_does_not_divide() -> None:
    with pytest.raises(ValueError, match="multiple of the 4 stages"):
        interleaved_overlapped(4, 2, 6)
