import pytest

from clustersim.workload.schedule import one_f_one_b


def test_the_rows_of_the_published_figure() -> None:
    rows = [" ".join(str(u).removesuffix(".0") for u in row) for row in one_f_one_b(4, 1, 5)]
    assert rows == [
        "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4",
        "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4",
        "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4",
    ]


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 3), (4, 2), (4, 8), (8, 64)])
def test_micro_batches_in_flight(stages: int, micro_batches: int) -> None:
    for stage, row in enumerate(one_f_one_b(stages, 1, micro_batches)):
        held = highest = 0
        for unit in row:
            held += 1 if unit.kind == "F" else -1
            highest = max(highest, held)
        assert highest == min(micro_batches, stages - stage)


def test_refuses_chunks() -> None:
    with pytest.raises(ValueError, match="num_virtual: 2"):
        one_f_one_b(2, 2, 4)
