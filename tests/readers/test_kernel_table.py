"""A user's table of kernels: what is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.hardware.kernel import Kernel
from clustersim.library import load_part
from clustersim.readers.kernel_table import read

H100 = load_part("gpu", "h100-sxm")
GOOD = """device,kind,dtype,m,n,k,batch,form,causal,nbytes,time_us
h100-sxm,gemm,bf16,4096,4096,4096,,,,,200
h100-sxm,attention,bf16,2048,2048,128,32,flash-3,1,,90
h100-sxm,memory,bf16,,,,,norm,,100000000,60
"""


def test_rows_become_kernels(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(GOOD)
    table = read(path)
    product, attention, norm = (row.kernel for row in table.rows)
    assert (product.flops, product.nbytes) == (2 * 4096**3, 6 * 4096**2)
    assert (attention.flops, attention.form) == (2 * 2048**2 * 128 * 32, "flash-3")
    assert norm.nbytes == 10**8
    assert [table(kernel, H100).provenance for kernel in (product, attention, norm)] == ["measured"] * 3
    other = Kernel(kind="memory", dtype="bf16", flops=0, nbytes=10**8)
    assert table(other, H100).provenance != "measured"


def test_parquet_says_the_same(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    (tmp_path / "mine.csv").write_text(GOOD)
    pd.read_csv(tmp_path / "mine.csv").to_parquet(tmp_path / "mine.parquet")
    assert read(tmp_path / "mine.parquet").rows == read(tmp_path / "mine.csv").rows


def test_every_fault_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("device,kind,dtype,m,n,k,time_us\nh100-sxm,gem,bf17,0,2,2.5,-1\n,memory,bf16,,,,1\n")
    with pytest.raises(BadInput) as caught:
        read(path)
    keys = [fault.key for fault in caught.value.faults]
    assert keys == [
        *(f"row 1, column {name}" for name in ("kind", "dtype", "m", "k", "time_us")),
        "row 2, column device",
        "row 2, column nbytes",
    ]


@pytest.mark.parametrize(
    ("row", "key", "nearest"),
    [
        ("h100-sxm,gemm,bf16,1e30,8,8,,9", "row 1, column m", 10**18),
        ("h100-sxm,gemm,bf16,8,8,8,,1e300", "row 1, column time_us", 10**9),
        ("h100-sxm,gemmm,bf16,8,8,8,,9", "row 1, column kind", "gemm"),
        ("h100-sxm,gemm,bf17,8,8,8,,9", "row 1, column dtype", "bf16"),
        ("h100-sxm,memory,bf16,,,,norrm,9", "row 1, column form", "norm"),
        ("h100-sxm,gemm,bf16,8,8,8,,9,10", "row 1", None),
    ],
)
def test_what_no_kernel_is(row: str, key: str, nearest: object, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"device,kind,dtype,m,n,k,form,time_us\n{row}\n")
    with pytest.raises(BadInput) as caught:
        read(path)
    first = caught.value.faults[0]
    assert (first.key, first.nearest) == (key, nearest)


def test_element_wise_is_the_usual_pass(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("device,kind,dtype,form,nbytes,time_us\nh100-sxm,memory,bf16,elementwise,100000000,60\n")
    usual = Kernel(kind="memory", dtype="bf16", flops=0, nbytes=10**8)
    assert read(path)(usual, H100).provenance == "measured"


def test_columns_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("device,kind,time,m\nh100-sxm,gemm,1,1\n")
    with pytest.raises(BadInput) as caught:
        read(path)
    assert [(fault.key, fault.nearest) for fault in caught.value.faults] == [
        ("column dtype", None),
        ("column time_us", None),
        ("columns", "time_us"),
    ]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be a readable CSV file"):
        read(tmp_path / "none.csv")
