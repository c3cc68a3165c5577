"""A table of ops becomes a graph, or every fault of it is told at once, with its line and column."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from clustersim.faults import BadInput
from clustersim.readers.graph_table import read

TABLE = """op,flops,out_bytes,after,parameters,device,scaling,launches
stem,2e9,4000,,1000,0,,
left,1e9,2000,stem,500,0,,3
right,1e9,2000,stem,500,1,,

join,,,left; right,,0,fixed,
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.csv"
    path.write_text(TABLE)
    return path


def faults_of(path: Path, text: str) -> dict[str, tuple[object, object]]:
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert {fault.file for fault in caught.value.faults} == {str(path)}
    return {fault.key: (fault.value, fault.nearest) for fault in caught.value.faults}


def test_rows_become_ops(file: Path) -> None:
    graph = read(file)
    assert graph.name == "net"
    assert [op.name for op in graph.ops] == ["stem", "left", "right", "join"]
    stem, left, _, join = graph.ops
    assert (stem.flops, stem.out_nbytes, stem.after, stem.parameters, stem.device) == (2e9, 4000, (), 1000, 0)
    assert stem.per_sample
    assert (left.launches, left.kind) == (3, "gemm")
    assert (join.after, join.kind, join.per_sample) == (("left", "right"), "memory", False)
    assert graph.parameters == 2000


def test_csv_parquet_and_frame_say_the_same(file: Path) -> None:
    frame = pd.read_csv(file)
    parquet = file.with_suffix(".parquet")
    frame.to_parquet(parquet)
    assert read(file).ops == read(parquet).ops == read(frame).ops
    assert read(frame, name="mine").name == "mine"


def test_every_fault_at_once(file: Path) -> None:
    text = "op,flops,after,device,scaling,dtype\n" + "\n".join(
        ["a,many,,0,,", "b,1e9,aa c,1.5,,", "b,1e9,,,,fp23", "c,-1,,-2,smple,", ",1e9,,,,"]
    )
    found = faults_of(file, text)
    assert found == {
        "line 2, flops": ("many", None),
        "line 3, device": ("1.5", None),
        "line 3, after": ("aa", "a"),
        "line 4, op": ("b", None),
        "line 4, dtype": ("fp23", "fp32"),
        "line 5, scaling": ("smple", "sample"),
        "line 5, flops": (-1.0, 0),
        "line 5, device": (-2, 0),
        "line 6, op": ("", None),
    }


def test_amounts_beyond_any_machine_are_faults(file: Path) -> None:
    found = faults_of(file, "op,flops,out_bytes,after,parameters\na,1e18,1e18,,1e18\n")
    assert found == {
        "line 2, flops": (1e18, 1e16),
        "line 2, out_bytes": (1e18, 2**44),
        "line 2, parameters": (10**18, 2**42),
    }
    largest = read(pd.DataFrame([{"op": "a", **{key.split(", ")[1]: nearest for key, (_, nearest) in found.items()}}]))
    assert largest.parameters == 2**42


def test_keys_are_columns_not_fields(file: Path) -> None:
    assert faults_of(file, "op,out_bytes\na,-1\n") == {"line 2, out_bytes": (-1.0, 0)}


def test_a_cycle_is_named(file: Path) -> None:
    found = faults_of(file, "op,nbytes,after\na,1,\nb,1,a d\nc,1,b\nd,1,c\ne,1,d\n")
    ((key, (path, _)),) = found.items()
    assert key in ("line 3, after", "line 4, after", "line 5, after")
    assert path in ("b -> c -> d -> b", "c -> d -> b -> c", "d -> b -> c -> d")


def test_columns_that_are_not_known_are_refused(file: Path) -> None:
    assert faults_of(file, "op,flop,after\na,1,\n") == {"header": ("flop", "flops")}
    assert faults_of(file, "name,flops\na,1\n")["header"][0] in ("name flops", "name")
    assert "line 2" in faults_of(file, "op,flops\na,1,2\n")


def test_seconds_or_flops_but_not_both(file: Path) -> None:
    assert list(faults_of(file, "op,flops,seconds\na,1e9,1e-3\n")) == ["line 2, seconds"]
    assert list(faults_of(file, "op,kind\na,gemm\n")) == ["line 2, flops"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(BadInput, match="readable"):
            read(tmp_path / name)


def test_a_table_without_rows(file: Path) -> None:
    file.write_text("op,flops\n")
    with pytest.raises(BadInput, match="at least one op"):
        read(file)
