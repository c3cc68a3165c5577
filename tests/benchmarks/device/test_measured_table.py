"""What is written is what clustersim reads."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from host_numbers import HostNumber
from kernel_cases import Case, usual_cases
from measured_table import above_the_peaks, row, write_host_numbers, write_kernels
from stopwatch import Timing

from clustersim.hardware.kernel import Kernel
from clustersim.library import load_part
from clustersim.readers.kernel_table import read

H100 = load_part("gpu", "h100-sxm")


def test_every_usual_case_comes_back_as_the_kernel_that_it_was(tmp_path: Path) -> None:
    cases = list(usual_cases(["fp32", "bf16", "fp8", "mxfp8", "nvfp4"]))
    timings = [Timing(seconds=(n + 1) * 1e-6, spread=0.0) for n in range(len(cases))]
    write_kernels(tmp_path / "kernels.csv", [row("b200", *pair) for pair in zip(cases, timings, strict=True)])
    table = read(tmp_path / "kernels.csv")
    assert [timed.kernel for timed in table.rows] == [case.kernel for case in cases]
    assert [timed.seconds for timed in table.rows] == pytest.approx([timing.seconds for timing in timings], rel=1e-3)
    assert {timed.device for timed in table.rows} == {"b200"}


@pytest.mark.parametrize(
    ("kernel", "fastest"),
    [
        (Kernel(kind="gemm", dtype="bf16", flops=989_400_000_000, nbytes=1, m=1, n=1, k=1), 1e-3),
        (Kernel(kind="gemm", dtype="fp8", flops=1_978_900_000_000, nbytes=1, m=1, n=1, k=1), 1e-3),
        (Kernel(kind="memory", dtype="fp32", flops=0, nbytes=3_350_000_000), 1e-3),
    ],
)
def test_a_time_that_beats_the_card_is_told(kernel: Kernel, fastest: float) -> None:
    case = Case(kernel=kernel)
    assert above_the_peaks(case, Timing(seconds=fastest * 1.001, spread=0.0), H100) == ""
    assert "of h100-sxm" in above_the_peaks(case, Timing(seconds=fastest * 0.99, spread=0.0), H100)


def test_host_numbers_say_their_unit(tmp_path: Path) -> None:
    number = HostNumber(quantity="host, to issue an op", nbytes=0, value=4.98765, unit="us", spread=0.0123)
    write_host_numbers(tmp_path / "host.csv", [number])
    with (tmp_path / "host.csv").open() as file:
        assert list(csv.DictReader(file)) == [
            {"quantity": "host, to issue an op", "nbytes": "0", "value": "4.988", "unit": "us", "spread": "0.012"}
        ]
