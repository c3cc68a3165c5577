"""A schedule and a sharding of the user's own, named in settings: they run, and a run folder repeats them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.library.job import JobSetup, load_job
from clustersim.study.point import prepare, run_point
from clustersim.study.run_folder import write_run

OWN = """
from clustersim.workload.schedule import Unit
from clustersim.workload.sharding import Movement, Sharding


def one_at_a_time(num_stages, num_virtual, num_micro_batches):
    return [[Unit(kind, j) for j in range(num_micro_batches) for kind in "FB"]] * num_stages


def sum_in_half(ranks):
    return Sharding(name="half", reduce=(Movement(kind="all_reduce", what="gradients", nbytes=2),))
"""
PIPELINE = {"plan.pp": 2, "plan.tp": 4, "global_batch": 4}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_words_package.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_words_package", raising=False)
    return "own_words_package"


def one_f_one_b(path: Path) -> Path:
    path.write_text("F0,F1,B0,F2,B1,F3,B2,B3\nF0,B0,F1,B1,F2,B2,F3,B3\n")
    return path


def step_s(run: cs.Result) -> float:
    return float(cs.summary(run)["step_time_s"])


def test_a_table_is_the_schedule_that_it_writes_down(tiny: JobSetup, tmp_path: Path) -> None:
    table = one_f_one_b(tmp_path / "own.csv")
    own = run_point(tiny.with_values({**PIPELINE, "plan.schedule": str(table)}))
    assert step_s(own) == step_s(run_point(tiny.with_values({**PIPELINE, "plan.schedule": "1f1b"})))


def test_a_run_folder_has_the_table(tiny: JobSetup, tmp_path: Path) -> None:
    table = one_f_one_b(tmp_path / "own.csv")
    setup = tiny.with_values({**PIPELINE, "plan.schedule": str(table)})
    run = run_point(setup)
    write_run(run, setup, tmp_path / "run")
    table.unlink()
    again = run_point(load_job(tmp_path / "run"))
    assert step_s(again) == step_s(run)
    assert again.inputs["cards"]["table/own"] == run.inputs["cards"]["table/own"]


def test_a_job_card_names_a_table_beside_it(tiny: JobSetup, tmp_path: Path) -> None:
    one_f_one_b(tmp_path / "own.csv")
    (tmp_path / "job.toml").write_text(
        'description = "x"\nmodel = "gpt2"\ntopology = "dgx-h100"\nglobal_batch = 4\nseq_len = 128\n'
        '[plan]\ntp = 4\npp = 2\nschedule = "own.csv"\n'
    )
    assert prepare(load_job(tmp_path / "job.toml")).job.plan["schedule"] == str(tmp_path / "own.csv")


def test_a_callable_by_name(tiny: JobSetup, tmp_path: Path, package: str) -> None:
    setup = tiny.with_values({**PIPELINE, "plan.schedule": f"{package}:one_at_a_time"})
    run = run_point(setup)
    assert run.inputs["settings"]["plan.schedule"] == f"{package}:one_at_a_time"
    assert step_s(run) > step_s(run_point(tiny.with_values(PIPELINE)))
    write_run(run, setup, tmp_path / "run")
    assert step_s(run_point(load_job(tmp_path / "run"))) == step_s(run)


def test_a_sharding_by_name(tiny: JobSetup, package: str) -> None:
    """Half the bytes of a sum in fp32."""
    own = run_point(tiny.with_values({"plan.sharding": f"{package}:sum_in_half"}))
    assert own.inputs["settings"]["plan.sharding"] == f"{package}:sum_in_half"
    assert step_s(own) < step_s(run_point(tiny))
    assert own.collectives["nbytes"].sum() * 2 == run_point(tiny).collectives["nbytes"].sum()


@pytest.mark.parametrize(
    ("key", "name", "words"),
    [
        ("plan.schedule", "own_words_package:missing", "cannot be imported"),
        ("plan.schedule", "no.such.package:x", "cannot be imported"),
        ("plan.sharding", "own_words_package:__name__", "not a callable"),
        ("plan.schedule", "1f1", "must be one of"),
        ("plan.sharding", "zero", "must be a callable"),
    ],
)
def test_what_cannot_be_found_is_named(tiny: JobSetup, package: str, key: str, name: str, words: str) -> None:
    with pytest.raises(BadInput) as error:
        prepare(tiny.with_values({**PIPELINE, key: name, "plan.zero": 1, "seq_len": 127}))
    found = {fault.key: fault for fault in error.value.faults}
    assert words in found[key].rule
    assert "seq_len" in found  # and whatever else is wrong, at once
