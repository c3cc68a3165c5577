"""CSV files written here: what is read, what is kept aside, and what is refused."""

from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.readers import collective_rows

HEADER = "id,hardware,nodes,gpus,gpus_per_node,collective,size_bytes,time_us,algbw_GBps,busbw_GBps,confidence"
GOOD = "a-1,H100,2,16,8,all_reduce,1048576,50.5,20.76,38.9,high"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(path: Path) -> list[tuple[str, object, str]]:
    with pytest.raises(BadInput) as caught:
        collective_rows.read(path)
    assert all(fault.file == str(path) for fault in caught.value.faults)
    return [(fault.key, fault.value, fault.rule) for fault in caught.value.faults]


def test_a_row(tmp_path: Path) -> None:
    path = write(tmp_path, HEADER, "", GOOD)
    assert collective_rows.detect(path)
    (row,), unused, notes = collective_rows.read(path)
    assert (row.line, row.id, row.hardware, row.collective) == (3, "a-1", "H100", "all_reduce")
    assert (row.num_nodes, row.num_ranks, row.ranks_per_node) == (2, 16, 8)
    assert (row.nbytes, row.time_us, row.algbw, row.busbw) == (1_048_576, 50.5, 20.76, 38.9)
    assert (row.confidence, row.source, unused, notes) == ("high", "", (), [])


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("alltoall", "all_to_all"),
        ("AllReduce", "all_reduce"),
        ("sendrecv", "send_recv"),
        ("reduce-scatter", "reduce_scatter"),
    ],
)
def test_names_of_collectives(tmp_path: Path, written: str, kind: str) -> None:
    (row,), _, _ = collective_rows.read(write(tmp_path, HEADER, GOOD.replace("all_reduce", written)))
    assert row.collective == kind


def test_only_some_columns_are_needed(tmp_path: Path) -> None:
    path = write(tmp_path, "time_us,collective,size_bytes,gpus,hardware", "9,broadcast,8,2,x")
    (row,), _, _ = collective_rows.read(path)
    assert (row.id, row.num_nodes, row.busbw) == ("", None, None)


def test_a_family_of_ones_own(tmp_path: Path) -> None:
    (row, other), _, notes = collective_rows.read(write(tmp_path, HEADER + ",family", GOOD + ",inside", f"b{GOOD},"))
    assert (row.family, other.family, notes) == ("inside", "", [])


def test_unknown_columns_are_noted(tmp_path: Path) -> None:
    _, _, notes = collective_rows.read(write(tmp_path, HEADER + ",notes,weather", GOOD + ",,sunny"))
    assert notes == ["columns that are not known here were left out: weather"]


def test_rows_that_cannot_be_compared_are_kept_aside(tmp_path: Path) -> None:
    rows = [
        "b,H100,1,8,8,all_reduce,,,,480,",
        "c,H100,1,8,8,all_reduce,1024,,,480,",
        "d,H100,1,,8,all_reduce,1024,5,,480,",
        "e,H100,1,1,8,all_reduce,1024,5,,480,",
        "f,H100,1,8,8,moe_dispatch,1024,5,,480,",
        "g,H100,1,8,8,all_reduce,0,5,,480,",
    ]
    kept, unused, _ = collective_rows.read(write(tmp_path, HEADER, *rows, GOOD))
    assert [row.id for row in kept] == ["a-1"]
    assert [(row.line, row.id, row.reasons[0]) for row in unused] == [
        (2, "b", "no size"),
        (3, "c", "no time"),
        (4, "d", "no number of ranks"),
        (5, "e", "one rank: no link is used"),
        (6, "f", "moe_dispatch is not a collective that is modelled"),
        (7, "g", "no size"),
    ]
    assert [row.reasons for row in unused[:2]] == [("no size", "no time"), ("no time",)]
    assert (unused[4].given["collective"], unused[4].given["busbw_GBps"]) == ("moe_dispatch", "480")


def test_every_bad_value_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        HEADER,
        "b,H100,0,8.5,8,,-4,0,nan,inf,",
        GOOD,
        GOOD.replace("50.5", "fast"),
        "c,H100,1",
    )
    assert [(key, value) for key, value, _ in refused(path)] == [
        ("line 2, column nodes", "0"),
        ("line 2, column gpus", "8.5"),
        ("line 2, column size_bytes", "-4"),
        ("line 2, column time_us", "0"),
        ("line 2, column algbw_GBps", "nan"),
        ("line 2, column busbw_GBps", "inf"),
        ("line 2, column collective", ""),
        ("line 4, column time_us", "fast"),
        ("line 4, column id", "a-1"),
        ("line 5", 3),
    ]


def test_missing_and_repeated_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "id,gpus,id,time_us", "a,x,b,3")
    assert not collective_rows.detect(path)
    assert [(key, value) for key, value, _ in refused(path)] == [
        ("line 1, column hardware", None),
        ("line 1, column collective", None),
        ("line 1, column size_bytes", None),
        ("line 1", "id"),
        ("line 2, column gpus", "x"),
    ]


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    assert refused(write(tmp_path, HEADER))[0][2] == "must have rows below its header"
    assert refused(write(tmp_path, ""))[0][2] == "must have a header and rows"
    assert refused(write(tmp_path, HEADER, GOOD, 'x,"open'))[0][0] == "line 3"
    assert refused(tmp_path / "absent.csv")[0][0] == "file"
    path = tmp_path / "rows.csv"
    path.write_bytes(b"\xff\xfe\x00")
    assert not collective_rows.detect(path)
    assert refused(path)[0][0] == "file"
