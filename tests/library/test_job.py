"""Job cards and settings put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.faults import BadInput
from clustersim.library.card import list_cards
from clustersim.library.job import JobSetup, load_job

CARD = """\
model = "./models/mine.toml"
topology = "dgx-h100"
global_batch = 16
"fabric.oversubscription" = 2
"perturb.slow_ranks" = {"3" = 1.3}
[plan]
tp = 2
bucket_bytes = "100 MB"
[sources]
plan = "assumed"
"""


@pytest.mark.parametrize("name", [name for name, _ in list_cards()["job"]])
def test_jobs_of_the_library(name: str) -> None:
    setup = load_job(name)
    assert setup.name == name
    trained = {"model": {"model", "global_batch", "seq_len"}, "graph": {"graph", "graph.batch"}}[setup.workload]
    assert {"topology", *trained} <= set(setup.values)
    assert all(setup.file(key) == str(setup.card.path) for key in setup.values if setup.card)


def test_a_card_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(CARD)
    for name in (tmp_path / "job.toml", tmp_path):
        setup = load_job(name)
        assert setup.values == {
            "model": str(tmp_path / "models/mine.toml"),
            "topology": "dgx-h100",
            "global_batch": 16,
            "fabric.oversubscription": 2,
            "perturb.slow_ranks": {3: 1.3},
            "plan.tp": 2,
            "plan.bucket_bytes": 100_000_000,
        }
        assert setup.value("plan.pp") == 1
        assert setup.value("nodes") is None


def test_what_is_changed_is_no_longer_the_cards(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(CARD)
    setup = load_job(tmp_path / "job.toml").with_values({"plan.tp": 4, "steps": 2})
    assert setup.values["plan.tp"] == 4
    assert setup.file("global_batch") == str(tmp_path / "job.toml")
    assert setup.file("plan.tp") == setup.file("steps") == setup.file("seed") == ""


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ("tp = 8\nglobal_batch = 0", ["tp", "global_batch"]),
        ("[plan]\ntp = 'two'\nttp = 1", ["plan.tp", "plan.ttp"]),
        ("steps = 1\n[sources]\nstep = 'x'", ["sources.step"]),
        ("steps = 1\n[sources]\nsteps = 5", ["sources.steps"]),
        ("[fabric]\nbuild = 'fat_tree'", ["fabric.build"]),
    ],
)
def test_faults_name_the_file(tmp_path: Path, content: str, keys: list[str]) -> None:
    (tmp_path / "job.toml").write_text(content)
    with pytest.raises(BadInput) as error:
        load_job(tmp_path / "job.toml")
    assert [fault.key for fault in error.value.faults] == keys
    assert {fault.file for fault in error.value.faults} == {str(tmp_path / "job.toml")}


def test_settings_without_a_card() -> None:
    assert JobSetup.of("x", model="gpt2", **{"plan.tp": 2}).values == {"model": "gpt2", "plan.tp": 2}
    with pytest.raises(BadInput) as error:
        JobSetup.of(model="gpt2", tp=2, **{"plan.tp": 0})
    assert [fault.key for fault in error.value.faults] == ["tp", "plan.tp"]
