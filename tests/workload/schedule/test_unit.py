import pytest

from clustersim.workload.schedule import Overlapped, Unit, units_of
from clustersim.workload.schedule.unit import Kind


def test_names_are_those_of_a_table() -> None:
    assert str(Unit("I", 3, 1)) == "I3.1"
    assert str(Overlapped(Unit("F", 4), Unit("B", 1, 1))) == "F4.0+B1.1"


@pytest.mark.parametrize("kinds", [("B", "F"), ("F", "W"), ("F", "F"), ("I", "B")])
def test_pairs_are_a_forward_and_a_backward(kinds: tuple[Kind, Kind]) -> None:
    with pytest.raises(ValueError, match="must pair a forward"):
        Overlapped(Unit(kinds[0], 0), Unit(kinds[1], 1))


def test_units_of_a_pair_come_one_by_one() -> None:
    pair = Overlapped(Unit("F", 1), Unit("B", 0))
    assert list(units_of([Unit("F", 0), pair])) == [Unit("F", 0), Unit("F", 1), Unit("B", 0)]
