"""A table of one's own measurements in a run: read, refused, copied into the run's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.analysis.summary import summary
from clustersim.faults import BadInput
from clustersim.library.job import JobSetup, load_job
from clustersim.study.point import prepare, run_point
from clustersim.study.run_folder import write_run

HEADER = "device,kind,dtype,m,n,k,form,nbytes,time_us\n"
NORM = f"h100-sxm,memory,bf16,,,,norm,{2 * 2 * 128 * 768},77\n"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + NORM)
    return path


def test_a_run_with_a_table_is_repeated_from_its_folder(tiny: JobSetup, measured: Path, tmp_path: Path) -> None:
    setup = tiny.with_values({"kernel_table": str(measured)})
    run = run_point(setup)
    assert summary(run)["coverage"]["measured"] > 0
    write_run(run, setup, tmp_path / "run")
    measured.unlink()
    again = run_point(load_job(tmp_path / "run"))
    assert summary(again)["step_time_s"] == summary(run)["step_time_s"] > summary(run_point(tiny))["step_time_s"]
    assert again.inputs["sha256"] == run.inputs["sha256"]


def test_what_the_device_cannot_do_is_refused_with_the_rest(tiny: JobSetup, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        HEADER
        + NORM
        + "h100-sxm,gemm,bf16,4096,4096,4096,,,70\n"
        + "h100-sxm,gemm,nvfp4,4096,4096,4096,,,70\n"
        + "b200,gemm,bf16,4096,4096,4096,,,70\n"
    )
    with pytest.raises(BadInput) as caught:
        prepare(tiny.with_values({"kernel_table": str(path), "plan.tp": 3}))
    told = [(fault.file, fault.key, fault.rule) for fault in caught.value.faults if fault.file]
    assert told == [
        (str(path), "row 2, column time_us", "must be 138.9 or more: the dense peak of h100-sxm allows no less"),
        (str(path), "row 3, column time_us", "is of nvfp4, for which h100-sxm has no matrix units"),
    ]
    assert "seq_len" in {fault.key for fault in caught.value.faults}


def test_a_table_that_is_not_there(tiny: JobSetup) -> None:
    with pytest.raises(BadInput, match=r"kernel_table: '\./none\.csv' is not a file"):
        prepare(tiny.with_values({"kernel_table": "./none.csv"}))


def test_a_device_that_is_no_card_is_refused(tiny: JobSetup, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + NORM + NORM.replace("h100-sxm", "h100-sxmm"))
    with pytest.raises(BadInput) as caught:
        prepare(tiny.with_values({"kernel_table": str(path)}))
    assert [(f.key, f.value, f.nearest) for f in caught.value.faults] == [
        ("row 2, column device", "h100-sxmm", "h100-sxm")
    ]
