"""Calibration of kernel cards: numbers that made the rows are found again, and others stay as assumed."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_models import KernelModels
from clustersim.library import load_part
from clustersim.library.build import build
from clustersim.library.card import Card
from clustersim.readers import kernel_rows
from clustersim.study.kernels.calibrate_files import calibrate_kernel_files, start_of
from clustersim.study.kernels.calibration import calibrate_kernels, errors, left_out_errors
from clustersim.study.kernels.measured import place

pytest.importorskip("scipy")

GPU = load_part("gpu", "b200")
COLUMNS = ("id", "source", "hardware", "op", "dtype", "m", "n", "k", "metric", "value", "unit")


def truth() -> KernelModels:
    """B200's card with another main loop: what the rows below were "measured" on."""
    assert GPU.kernels is not None
    product = replace(GPU.kernels.gemm["bf16"], peak=0.5, memory_fraction=0.6)
    return replace(GPU.kernels, gemm={**GPU.kernels.gemm, "bf16": product})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernels") / "kernels.csv"
    gpu = replace(GPU, kernels=truth())
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for i, m in enumerate((1, 64, 512, 1024, 4096, 8192)):
            for n, k in ((4096, 4096), (8192, 2048), (2048, 8192), (12288, 4096)):
                kernel = Kernel(
                    kind="gemm", dtype="bf16", flops=2 * m * n * k, nbytes=2 * (m * k + k * n + m * n), m=m, n=n, k=k
                )
                took = 1e3 * kernel_cost(kernel, gpu).seconds
                writer.writerow([f"{i}-{n}-{k}", "made up", "B200", "gemm", "bf16", m, n, k, "time", took, "ms"])
        writer.writerow(["far", "made up", "TPU v7x", "gemm", "bf16", 1, 1, 1, "time", 1, "ms"])
    return path


def test_the_numbers_are_found_again(table: Path) -> None:
    rows, unused = place(kernel_rows.read(table)[0])
    assert [one.reason for one in unused] == ["no card of the hardware"]
    fitted = calibrate_kernels(rows, start_of("b200", {"gemm.bf16"}))
    assert fitted.models.gemm["bf16"].peak == pytest.approx(0.5, rel=0.05)
    assert fitted.models.gemm["bf16"].memory_fraction == pytest.approx(0.6, rel=0.05)
    assert np.median(np.abs(errors(rows, fitted.models))) < 0.03
    assert fitted.models.gemm["fp8"] == start_of("b200", set()).gemm["fp8"]


def test_left_out_shapes_are_predicted_from_the_others(table: Path) -> None:
    rows, _ = place(kernel_rows.read(table)[0])
    found = left_out_errors(rows, start_of("b200", {"gemm.bf16"}), folds=4)
    assert np.median(np.abs(found)) < 0.06
    assert np.median(np.abs(errors(rows))) > 0.15  # the shipped card is of another device than the rows were made with


def test_a_card_is_written_that_says_what_it_knows(table: Path) -> None:
    made = calibrate_kernel_files([table])
    (path,) = made.texts
    assert path == "kernels/b200.toml"
    assert np.abs(made.after).mean() < np.abs(made.before).mean()
    import tomllib

    data = tomllib.loads(made.texts[path])
    b200 = load_part("kernels", "b200")
    card = build(Card(kind="kernels", name="b200", path=Path(path), sha256="", data=data), KernelModels)
    assert card.sources["gemm.bf16"].startswith("measured: least squares over 24 rows (median error")
    assert card.sources["gemm.bf16"].endswith("made up")
    assert all(card.sources[key] == text for key, text in b200.sources.items() if not key.startswith("gemm.bf16"))
    assert card.gemm["bf16"].peak == pytest.approx(made.fitted["b200"].models.gemm["bf16"].peak, rel=0.01)


def test_too_few_rows_calibrate_nothing(table: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("\n".join(table.read_text().splitlines()[:5]) + "\n")
    with pytest.raises(BadInput, match="hold no row to calibrate from"):
        calibrate_kernel_files([few])


def test_every_fault_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "kernels.csv"
    path.write_text(f"{','.join(COLUMNS)}\na,b,B200,gemm,bf16,1.5,2,x,time,-1,ms\n")
    with pytest.raises(BadInput) as caught:
        kernel_rows.read(path)
    assert [fault.key for fault in caught.value.faults] == [f"line 2, column {name}" for name in ("m", "k", "value")]
