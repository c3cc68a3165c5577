"""Rows of measured kernels: what a table must have."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.readers.kernel_rows import read

HEADER = "id,hardware,op,dtype,m,n,k,metric,value,unit"
ROW = "a100,gemm,bf16,128,128,128,time,0.01,ms"


def table(folder: Path, *lines: str) -> Path:
    path = folder / "kernels.csv"
    path.write_text("\n".join(lines))
    return path


def test_rows_without_an_id_and_with_different_ones(tmp_path: Path) -> None:
    rows, notes = read(table(tmp_path, f"{HEADER},colour", f",{ROW},red", f"one,{ROW},red", f",{ROW},red"))
    assert [(row.line, row.id) for row in rows] == [(2, ""), (3, "one"), (4, "")]
    assert notes == ["columns that are not known here were left out: colour"]


def test_an_id_names_one_row(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        read(table(tmp_path, HEADER, f"one,{ROW}", f"two,{ROW}", f"one,{ROW}"))
    (fault,) = error.value.faults
    assert (fault.key, fault.value) == ("line 4, column id", "one")
    assert fault.rule == "must be the id of one row only; it is that of line 2 too"


def test_all_missing_columns_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        read(table(tmp_path, "id,hardware,op,dtype,m,n,k", "one,a100,gemm,bf16,1,1,1"))
    assert [fault.key for fault in error.value.faults] == [
        f"line 1, column {name}" for name in ("metric", "value", "unit")
    ]


def test_attention_with_other_values_and_a_window(tmp_path: Path) -> None:
    (row,), notes = read(table(tmp_path, f"{HEADER},value_dim,window", f"one,{ROW},128,1024"))
    assert (row.counts["value_dim"], row.counts["window"], notes) == (128, 1024, [])
