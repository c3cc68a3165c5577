"""The command: what it refuses, what it leaves out, and a short run on a GPU where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice
from kernel_cases import Case
from measure import main, measure_kernels
from stopwatch import Stopwatch
from torch_device import NotMeasuredError, TorchDevice, why_not

from clustersim.hardware.kernel import Kernel
from clustersim.library import load_part

H100 = load_part("gpu", "h100-sxm")
MISSING = why_not()


def product(m: int, dtype: str = "bf16") -> Case:
    shape = {"m": m, "n": 4096, "k": 4096}
    return Case(
        kernel=Kernel(kind="gemm", dtype=dtype, flops=2 * m * 4096**2, nbytes=2 * 4096 * (4096 + 2 * m), **shape)
    )


class Kernels(FakeDevice):
    """A device whose products take a millisecond each, whatever their shape; it takes no fp8."""

    def work(self, case: Case) -> Any:
        if case.kernel.dtype == "fp8":
            raise NotMeasuredError("no such units")
        return self.kernel(1e-3)


def test_what_cannot_be_and_what_the_device_refuses_is_left_out_with_its_reason() -> None:
    device = Kernels()
    cases = [product(4096), product(2**20), product(4096, "fp8"), product(4096, "int4")]
    measured = measure_kernels(device, Stopwatch(device, device.clock), cases, H100)  # type: ignore[arg-type]
    assert [(row["m"], row["time_us"]) for row in measured.rows] == [(4096, "1000")]
    assert [line.split(": ")[0] for line in measured.left_out] == [
        "gemm bf16 1048576 x 4096 x 4096",
        "gemm fp8 4096 x 4096 x 4096",
        "gemm int4 4096 x 4096 x 4096",
    ]
    assert "is above the dense peak of h100-sxm" in measured.left_out[0]


def test_a_card_that_is_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "h10-sxm", "--out", str(tmp_path)]) == 2
    assert "nearest: h100-sxm" in capsys.readouterr().err


@pytest.mark.skipif(not MISSING, reason="there is a GPU")
def test_without_a_gpu_the_reason_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--device", "h100-sxm", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"nothing is measured: {MISSING}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.benchmark
@pytest.mark.skipif(bool(MISSING), reason=MISSING or "there is a GPU")
def test_on_a_gpu_larger_products_take_longer() -> None:
    device = TorchDevice()
    cases = [product(m) for m in (1024, 4096, 16384)]
    measured = measure_kernels(device, Stopwatch(device), cases, load_part("gpu", "gb300"))
    times = [float(str(row["time_us"])) for row in measured.rows]
    assert len(times) == 3
    assert times == sorted(times)
