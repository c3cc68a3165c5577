import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.workload.schedule import Placement, bidirectional, loop, vee

STAGES = st.integers(1, 9)


@settings(deadline=None, max_examples=50)
@given(STAGES, st.integers(1, 4))
def test_a_loop_passes_all_stages_for_each_chunk(p: int, v: int) -> None:
    placement = loop(p, v)
    assert (placement.num_stages, placement.num_virtual) == (p, v)
    for s in range(p):
        for c in range(v):
            assert placement.position(s, c) == (0, c * p + s)


@settings(deadline=None, max_examples=50)
@given(STAGES)
def test_a_vee_turns_on_the_last_stage(p: int) -> None:
    placement = vee(p)
    assert [placement.position(s, 1) for s in range(p)] == [(0, 2 * p - 1 - s) for s in range(p)]
    assert placement.after(p - 1, 0) == (p - 1, 1)
    assert placement.before(0, 0) is None
    assert placement.after(0, 1) is None


@settings(deadline=None, max_examples=50)
@given(STAGES)
def test_two_directions_hold_the_model_twice(p: int) -> None:
    placement = bidirectional(p)
    assert [len(route) for route in placement.routes] == [p, p]
    assert [placement.position(s, 0) for s in range(p)] == [(0, s) for s in range(p)]
    assert [placement.position(s, 1) for s in range(p)] == [(1, p - 1 - s) for s in range(p)]


@settings(deadline=None, max_examples=50)
@given(STAGES)
def test_before_and_after_undo_each_other(p: int) -> None:
    for placement in (loop(p, 3), vee(p), bidirectional(p)):
        for route in placement.routes:
            for place in route[1:]:
                behind = placement.before(*place)
                assert behind is not None
                assert placement.after(*behind) == place


@pytest.mark.parametrize(
    "routes",
    [(), ((),), (((0, 0), (0, 0)),), (((0, 0), (1, 1)),), (((1, 0),),), (((0, 0),), ((0, 0),))],
)
def test_every_chunk_of_every_stage_once(routes: tuple[tuple[tuple[int, int], ...], ...]) -> None:
    with pytest.raises(ValueError, match="must visit each chunk of each stage once"):
        Placement(routes=routes)


@pytest.mark.parametrize("shape", [vee, bidirectional])
def test_shapes_of_two_chunks_refuse_others(shape: type) -> None:
    with pytest.raises(ValueError, match="num_virtual: 3 must be 2"):
        shape(4, 3)


def test_placements_compare_and_travel() -> None:
    assert vee(3) == pickle.loads(pickle.dumps(vee(3)))
    assert vee(3).before(1, 1) == pickle.loads(pickle.dumps(vee(3))).before(1, 1)
    assert vee(2) != bidirectional(2)
