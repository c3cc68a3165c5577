"""Where a run came from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from clustersim.analysis.summary import summary
from clustersim.library.card import list_cards, read_card
from clustersim.library.job import JobSetup, load_job
from clustersim.study.point import run_point
from clustersim.study.provenance import cards_of
from clustersim.study.run_folder import write_run


def parts_in(table: object, parts: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Every part of the library that a card's text names under a key of that kind."""
    found = set()
    if isinstance(table, dict):
        for key, value in table.items():
            if isinstance(value, str):
                found |= {(kind, value) for kind, names in parts.items() if kind in key and value in names}
            else:
                found |= parts_in(value, parts)
    return found


@pytest.mark.parametrize("name", [name for name, _ in list_cards()["topology"]])
def test_every_part_of_a_topology_is_found_once(name: str) -> None:
    kinds = ("gpu", "cpu", "superchip", "link", "nic", "switch", "drive")
    parts = {kind: {card for card, _ in list_cards()[kind]} for kind in kinds}
    cards = cards_of(JobSetup.of(model="gpt2", topology=name))
    found = [(card.kind, card.name) for card in cards]
    assert len(set(found)) == len(found)
    assert parts_in(read_card("topology", name).data, parts) <= set(found)
    for card in cards:
        if card.kind == "superchip":
            assert parts_in(card.data, parts) <= set(found)


def test_the_topologies_of_a_mix_and_parts_of_settings_are_behind_a_run() -> None:
    cards = cards_of(JobSetup.of(model="gpt2", topology="mixed-a100-h100", **{"storage.nic": "ethernet-25g"}))
    found = [(card.kind, card.name) for card in cards]
    assert [name for kind, name in found if kind == "topology"] == ["mixed-a100-h100", "dgx-a100", "dgx-h100"]
    assert {("gpu", "a100-sxm-80gb"), ("gpu", "h100-sxm"), ("nic", "connectx-6"), ("nic", "ethernet-25g")} <= set(found)


def test_a_mix_is_recorded_by_its_own_name(tiny: JobSetup) -> None:
    mixed = tiny.with_values({"topology": "mixed-a100-h100", "nodes": 2, "plan.dp": 16, "global_batch": 16})
    assert run_point(mixed).inputs["settings"]["topology"] == "mixed-a100-h100"


def test_the_hash_follows_content_not_place(tiny: JobSetup, tmp_path: Path) -> None:
    plain = run_point(tiny).inputs
    copied = tmp_path / "gpt2.toml"
    copied.write_bytes(read_card("model", "gpt2").path.read_bytes())
    assert run_point(tiny.with_values({"model": str(copied)})).inputs == plain
    copied.write_bytes(copied.read_bytes() + b"\n# changed\n")
    assert run_point(tiny.with_values({"model": str(copied)})).inputs["sha256"] != plain["sha256"]
    assert run_point(tiny.with_values({"micro_batch": 2})).inputs["sha256"] != plain["sha256"]


def test_what_was_left_open_is_stated_as_resolved(tiny: JobSetup) -> None:
    settings = run_point(tiny).inputs["settings"]
    assert (settings["nodes"], settings["plan.dp"], settings["plan.schedule"]) == (1, 8, "1f1b")
    given = {"nodes": 1, "plan.dp": 8, "plan.schedule": "1f1b", "plan.sequence_parallel": False}
    assert run_point(tiny.with_values(given)).inputs["sha256"] == run_point(tiny).inputs["sha256"]


def test_a_part_by_its_file_is_found_from_where_the_caller_is(
    tiny: JobSetup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from the folder of the topology's card; and its run is repeated from anywhere."""
    card = read_card("communication", "nccl-h100").path.read_text()
    slow = re.sub(r'(?m)^launch_latency = ".*"', 'launch_latency = "90 us"', card)
    for folder in ("communication", "transport"):
        (tmp_path / folder).mkdir()
    (tmp_path / "communication/mine.toml").write_text(slow)
    (tmp_path / "transport/mine.toml").write_bytes(read_card("transport", "rdma").path.read_bytes())
    monkeypatch.chdir(tmp_path)
    given = {"plan.tp": 4, "plan.dp": 2, "communication.node": "communication/mine.toml"}
    given |= {"communication.network": "./transport/mine.toml"}
    setup = tiny.with_values(given)
    run = run_point(setup)
    plain = run_point(tiny.with_values({"plan.tp": 4, "plan.dp": 2}))
    assert summary(run)["step_time_s"] > summary(plain)["step_time_s"]
    assert {"communication/mine", "transport/mine"} <= set(run.inputs["cards"])
    write_run(run, setup, tmp_path / "run")
    (tmp_path / "communication/mine.toml").unlink()
    monkeypatch.chdir("/")
    again = run_point(load_job(tmp_path / "run"))
    assert summary(again)["step_time_s"] == summary(run)["step_time_s"]
    assert again.inputs["settings"] == run.inputs["settings"]
