"""A file of measured kernels from end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import clustersim as cs
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library import load_part
from clustersim.study.kernels.validate import KERNELS, NO_NUMBERS
from clustersim.study.validation import Validation
from clustersim.study.validation_text import validation_text

COLUMNS = ("id", "source", "hardware", "op", "dtype", "m", "n", "k", "metric", "value", "unit")
GPU = load_part("gpu", "h100-sxm")


def product(m: int, n: int, k: int) -> Kernel:
    nbytes = 2 * (m * k + k * n + m * n)
    return Kernel(kind="gemm", dtype="bf16", flops=2 * m * n * k, nbytes=nbytes, m=m, n=n, k=k)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Times twice as long as the device's card gives, the same as rates, and three rows that are refused."""
    path = tmp_path_factory.mktemp("kernels") / "mine.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for i, m in enumerate((64, 512, 1024, 4096)):
            for n, k in ((4096, 4096), (8192, 2048)):
                took = 2 * kernel_cost(product(m, n, k), GPU).seconds
                shape = ("H100-SXM5", "gemm", "bf16", m, n, k)
                writer.writerow([f"t{i}-{n}", "lab", *shape, "time", 1e3 * took, "ms"])
                writer.writerow([f"r{i}-{n}", "other", *shape, "rate", 2 * m * n * k / took / 1e12, "TFLOP/s"])
        writer.writerow(["far", "lab", "TPU v7x", "gemm", "bf16", 1, 1, 1, "time", 1, "ms"])
        writer.writerow(["odd", "lab", "H100-SXM5", "gemm", "bf16", "", 1, 1, "time", 1, "ms"])
    return path


@pytest.fixture(scope="module")
def report(table: Path) -> Validation:
    return cs.validate(table)


def test_errors_are_of_what_is_published(report: Validation) -> None:
    for row in report.rows[:-2]:
        assert row.error == pytest.approx(-0.5 if row.unit == "ms" else 1.0)
        assert sum(row.coverage.values()) == 1
        assert row.in_domain == (row.labels["provenance"] != "assumed")
    assert [row.reason for row in report.rows[-2:]] == ["no card of the hardware", "no shape"]


def test_groups_and_json(report: Validation) -> None:
    assert list(report.groups("device,kind")) == ["h100-sxm gemm", "not placed not placed"]
    answer = json.loads(json.dumps(report.answer("device,part"), allow_nan=False))
    assert (answer["num_rows"], answer["num_predicted"], answer["num_refused"]) == (18, 16, 2)
    assert set(answer["families"]) == {"mine:lab", "mine:other"}
    assert answer["by"]["device,part"]["h100-sxm gemm.bf16"]["num_rows"] == 16
    assert answer["totals"]["all rows"]["num_predicted"] == 16


@pytest.mark.parametrize("by", KERNELS.labels)
def test_groups_are_parts_of_the_whole(report: Validation, by: str) -> None:
    assert sorted(row.line for rows in report.groups(by).values() for row in rows) == [row.line for row in report.rows]


def test_text(report: Validation) -> None:
    text = validation_text(report)
    assert max(map(len, text.splitlines())) <= 80
    for words in ("by device, kind", "by device, part", "h100-sxm gemm.bf16", "refused", "a device's card stands"):
        assert words in text
    assert "rank" not in text


def test_one_family(table: Path) -> None:
    assert {row.unit for row in cs.validate(table, family="mine:other").rows} == {"TFLOP/s"}


def test_what_others_tell(table: Path) -> None:
    """Numbers fitted to the other source, or to other shapes, give nearly the time that both were made with."""
    pytest.importorskip("scipy")
    for column in ("source", "shape"):
        rows = cs.validate(table, leave_out=column).rows[:-2]
        found = np.array([row.left_out_error for row in rows], float)
        assert np.median(np.abs(found)) < 0.2


@pytest.mark.parametrize(("op", "unit"), [("gemm", "us"), ("gemm", ""), ("stream copy", "TFLOP/s")])
def test_a_unit_that_tells_no_time_is_refused(op: str, unit: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{','.join(COLUMNS)}\na,lab,H100-SXM5,{op},bf16,512,512,512,time,9,{unit}\n")
    (row,) = cs.validate(path).rows
    assert row.reason.startswith("its unit is none of ms, TB/s and TFLOP/s")


def test_a_rate_above_the_peak_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(f"{','.join(COLUMNS)}\na,lab,H100-SXM5,gemm,bf16,512,512,512,rate,5000,TFLOP/s\n")
    (row,) = cs.validate(path).rows
    assert row.reason == "above the dense peak of the device"


def test_what_cannot_be_left_out_is_refused(table: Path) -> None:
    with pytest.raises(cs.BadInput, match="must be one of shape, source"):
        cs.validate(table, leave_out="line")


def test_a_device_without_numbers_of_a_kernel(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks(kernel: Kernel, gpu: object) -> None:
        raise KeyError(kernel.form)

    monkeypatch.setattr("clustersim.study.kernels.validate.kernel_cost", lacks)
    assert {row.reason for row in cs.validate(table).rows[:-2]} == {NO_NUMBERS}
