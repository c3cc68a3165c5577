import pickle
from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.workload.schedule import (
    Overlapped,
    Unit,
    check,
    dualpipev,
    from_table,
    one_f_one_b,
    placement_of,
    read_table,
    vee,
)


def test_text_and_table_are_the_same() -> None:
    table = dualpipev(3, 2, 7)
    schedule = from_table([[str(entry) for entry in row] for row in table], placement="vee")
    assert [list(row) for row in schedule(3, 2, 7)] == table
    assert placement_of(schedule, 3, 2) == vee(3)
    assert schedule.num_virtual == 2


def test_chunks_of_a_loop_are_counted() -> None:
    assert from_table([["F0", "F0.1", "F0.2", "B0.2", "B0.1", "B0"]]).num_virtual == 3


def test_a_pair_and_a_missing_chunk() -> None:
    row = from_table([["F0", "F1 + B0", "I1", "W1"]])(1, 1, 2)[0]
    assert row == (Unit("F", 0), Overlapped(Unit("F", 1), Unit("B", 0)), Unit("I", 1), Unit("W", 1))


def test_another_shape_is_told_by_check() -> None:
    schedule = from_table([[str(u) for u in row] for row in one_f_one_b(2, 1, 3)])
    (fault,) = check(schedule(4, 1, 3), num_stages=4, num_virtual=1, num_micro_batches=3)
    assert "must list the 4 stages" in str(fault)


def test_every_fault_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        from_table([["F0", "G1", "B0"], ["B0+F0", "F0+W0", "F-1", "F0+B1+B2", "F0.x"]], placement="vees")
    assert [(f.key, f.value) for f in caught.value.faults] == [
        ("placement", "vees"),
        ("stage 0, unit 1", "G1"),
        ("stage 1, unit 0", "B0+F0"),
        ("stage 1, unit 1", "F0+W0"),
        ("stage 1, unit 2", "F-1"),
        ("stage 1, unit 3", "F0+B1+B2"),
        ("stage 1, unit 4", "F0.x"),
    ]
    assert caught.value.faults[0].nearest == "vee"


def test_no_rows_and_too_many_chunks() -> None:
    with pytest.raises(BadInput, match="must have a row for each stage"):
        from_table([])
    with pytest.raises(BadInput, match=r"stage 0, F0\.2"):
        from_table([["F0.2"]], placement="vee")
    with pytest.raises(BadInput, match="must have at least one unit"):
        from_table([[], []])


@pytest.mark.parametrize("suffix", [".csv", ".toml"])
def test_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"mine{suffix}"
    if suffix == ".csv":
        path.write_text("placement,vee\nF0, F0.1, I0.1, W0.1,, B0\n\n")
    else:
        path.write_text('placement = "vee"\nrows = ["F0 F0.1 I0.1 W0.1  B0"]\n')
    schedule = read_table(path)
    assert schedule.name == "mine"
    assert schedule == pickle.loads(pickle.dumps(schedule))
    table = schedule(1, 2, 1)
    assert [str(u) for u in table[0]] == ["F0.0", "F0.1", "I0.1", "W0.1", "B0.0"]
    assert check(table, num_stages=1, num_virtual=2, num_micro_batches=1, placement=vee(1)) == ()


def test_a_csv_without_a_placement_is_a_loop(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("F0,F1,B0,B1\nF0,B0,F1,B1\n")
    table = read_table(path)(2, 1, 2)
    assert check(table, num_stages=2, num_virtual=1, num_micro_batches=2) == ()


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.txt", "F0", "must be .csv or .toml"),
        ("a.toml", "rows = 3\nplacment = 'vee'\n", "nearest: placement"),
        ("a.toml", "rows = 3\nplacment = 'vee'\n", "must be an array of strings"),
        ("a.toml", "rows = [", "cannot be read"),
        ("a.toml", "rows = ['F0 B0']\nplacement = 2\n", "must be one of loop, vee, bidirectional"),
        ("a.csv", "F0,X1\n", "stage 0, unit 1"),
    ],
)
def test_files_with_faults(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_table(path)
    assert told in str(caught.value)
    assert all(fault.file == str(path) for fault in caught.value.faults)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_table(tmp_path / "none.csv")
