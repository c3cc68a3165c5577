import pytest

from clustersim.workload.schedule import Unit, gpipe


def test_all_forward_then_all_backward_in_reverse() -> None:
    row = [Unit("F", 0), Unit("F", 1), Unit("F", 2), Unit("B", 2), Unit("B", 1), Unit("B", 0)]
    assert gpipe(2, 1, 3) == [row, row]


def test_refuses_chunks() -> None:
    with pytest.raises(ValueError, match="num_virtual: 2"):
        gpipe(2, 2, 4)
