import pytest

from clustersim.workload.schedule import Overlapped, Unit, gpipe, ideal, loop, one_f_one_b, vee


def test_one_stage_by_hand() -> None:
    table = [[Unit("F", 0), Unit("F", 1), Unit("B", 0), Unit("I", 1), Unit("W", 1)]]
    found = ideal(table, loop(1, 1), forward=2, backward_input=3, backward_weight=5)
    assert [(s.start, s.end) for s in found.rows[0]] == [(0, 2), (2, 4), (4, 12), (12, 15), (15, 20)]
    assert found.makespan == 20
    assert found.busy == (20,)
    assert found.bubbles == (0,)
    assert found.peaks() == (2,)
    # At 4 both are whole; from 15 on one is left at its second weight.
    assert found.peaks(before=1, after=3) == (3,)


def test_messages_take_time_between_stages_only() -> None:
    table = [[Unit("F", 0), Unit("F", 0, 1), Unit("B", 0, 1), Unit("B", 0)]]
    assert ideal(table, loop(1, 2), forward=1, backward_input=1, backward_weight=1, send=7).makespan == 6
    table = one_f_one_b(2, 1, 1)
    found = ideal(table, loop(2, 1), forward=1, backward_input=1, backward_weight=1, send=7)
    assert [(s.start, s.end) for row in found.rows for s in row] == [(0, 1), (18, 20), (8, 9), (9, 11)]
    assert found.bubbles == (17, 0)


def test_costs_by_stage_and_chunk() -> None:
    table = [[Unit("F", 0), Unit("B", 0, 1), Unit("B", 0)], [Unit("F", 0), Unit("F", 0, 1), Unit("B", 0, 1)]]
    table[0].insert(1, Unit("F", 0, 1))
    table[1].append(Unit("B", 0))
    found = ideal(table, vee(2), forward=lambda s, c: 1 + 10 * s + 100 * c, backward_input=0, backward_weight=0)
    assert [s.end for s in found.rows[0]][:2] == [1, 1 + 11 + 111 + 101]


def test_pairs_take_the_sum_or_what_is_given() -> None:
    table = [[Unit("F", 0), Overlapped(Unit("F", 1), Unit("B", 0)), Unit("B", 1)]]
    costs = {"forward": 2, "backward_input": 3, "backward_weight": 4}
    assert ideal(table, loop(1, 1), **costs).makespan == 2 + 9 + 7
    assert ideal(table, loop(1, 1), **costs, overlapped=8).makespan == 2 + 8 + 7


def test_a_pair_waits_for_both() -> None:
    table = [
        [Unit("F", 0), Unit("F", 1), Unit("B", 0), Unit("B", 1)],
        [Unit("F", 0), Overlapped(Unit("F", 1), Unit("B", 0)), Unit("B", 1)],
    ]
    found = ideal(table, loop(2, 1), forward=lambda s, c: 5 if s == 0 else 1, backward_input=1, backward_weight=1)
    assert [(s.start, s.end) for s in found.rows[1]] == [(5, 6), (10, 13), (13, 15)]


@pytest.mark.parametrize(("p", "m"), [(1, 1), (3, 2), (4, 9)])
def test_gpipe_holds_all(p: int, m: int) -> None:
    found = ideal(gpipe(p, 1, m), loop(p, 1), forward=1, backward_input=1, backward_weight=1)
    assert found.peaks() == (m,) * p
    assert found.makespan == (m + p - 1) * 3


def test_what_cannot_be_played() -> None:
    with pytest.raises(ValueError, match="wait for each other"):
        ideal([[Unit("B", 0), Unit("F", 0)]], loop(1, 1), forward=1, backward_input=1, backward_weight=1)
