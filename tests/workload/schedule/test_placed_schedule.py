import pytest

from clustersim.workload.schedule import PlacedSchedule, bidirectional, dualpipe, gpipe, loop, placement_of, vee, zb_v


def test_a_plain_callable_is_in_a_loop() -> None:
    assert placement_of(gpipe, 3, 1) == loop(3, 1)
    assert placement_of(zb_v, 3, 2) == vee(3)
    assert placement_of(dualpipe, 4, 2) == bidirectional(4)


def test_it_is_called_like_any_schedule() -> None:
    assert PlacedSchedule(table=gpipe, placement=loop)(2, 1, 3) == gpipe(2, 1, 3)


def test_chunks_that_the_placement_does_not_know() -> None:
    with pytest.raises(ValueError, match="num_virtual: 1 must be 2 for zb-v"):
        zb_v(4, 1, 8)
