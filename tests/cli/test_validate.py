"""``validate``: its tables, its JSON, its folder, and what it refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import clustersim as cs

HEADER = "id,group,source,hardware,nodes,gpus,gpus_per_node,inter_link,collective,size_bytes,time_us,confidence"
ROWS = (
    "a,one,lab,H100,1,8,8,,all_reduce,1048576,60,high",
    "b,two,lab,A100,1,8,8,,alltoall,4096,20,low",
    "c,two,lab,A100,2,16,8,not stated,all_reduce,67108864,900,medium",
    "d,two,lab,Abacus,2,16,8,,all_reduce,67108864,900,medium",
)


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "mine.csv").write_text("\n".join([HEADER, *ROWS]) + "\n")
    return "mine.csv"


def errors(answer: Any) -> list[tuple[str, Any, Any]]:
    assert answer.code == 2
    assert answer.json["status"] == "bad_input"
    assert len(answer.err.splitlines()) == len(answer.json["errors"])
    return [(error["key"], error["value"], error["nearest"]) for error in answer.json["errors"]]


def test_json_is_what_validate_says(call: Callable[..., Any], data: str) -> None:
    answer = call("validate", "--data", data, "--json")
    assert (answer.code, answer.err) == (0, "")
    assert answer.json == json.loads(json.dumps(cs.validate(data).answer()))
    assert [row["status"] for row in answer.json["rows"]] == ["predicted"] * 3 + ["refused"]
    by = call("validate", "--data", data, "--json", "--by", "hardware").json["by"]
    assert {name: figures["num_rows"] for name, figures in by["hardware"].items()} == {
        "H100": 1,
        "A100": 2,
        "Abacus": 1,
    }


def test_tables(call: Callable[..., Any], data: str) -> None:
    answer = call("validate", "--data", data)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("mine.csv: 4 rows, 3 predicted, 1 refused")
    assert max(map(len, answer.out.splitlines())) <= 80
    for name in ("by source", "by collective", "by size", "by communication", "totals", "refused", "assumed"):
        assert f"\n{name}" in answer.out
    assert "\nby source" not in call("validate", "--data", data, "--by", "hardware").out


def test_a_folder_of_rows_and_a_figure(call: Callable[..., Any], data: str, tmp_path: Path) -> None:
    answer = call("validate", "--data", data, "--out", "out", "--by", "group")
    names = ["accuracy_mine.png", "accuracy_mine_by_size.png", "rows.csv", "versions.json"]
    assert f"written to out: {', '.join(names)}" in " ".join(answer.out.split())
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert (tmp_path / "out" / names[0]).read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "out" / "rows.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    told = call("validate", "--data", data, "--json", "--out", "out").json["rows"]  # the same folder again
    assert [row["id"] for row in written] == [row["id"] for row in told]
    assert [float(row["predicted"] or "nan") for row in written][:3] == [row["predicted"] for row in told][:3]
    assert written[3]["reason"] == told[3]["reason"]


def test_a_folder_without_a_prediction_has_no_figure(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text(f"{HEADER}\n{ROWS[3]}\n")
    answer = call("validate", "--data", "none.csv", "--out", "out")
    assert answer.code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["rows.csv", "versions.json"]


def test_without_data_it_reads_what_comes_along(
    call: Callable[..., Any], data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "steps.csv").write_text(STEPS)
    files = (tmp_path / data, tmp_path / "steps.csv")
    monkeypatch.setattr("clustersim.study.validate.measurement_files", lambda: files)
    answer = call("validate", "--json", "--by", "hardware")
    assert answer.code == 0
    assert answer.json["files"] == ["mine.csv", "steps.csv"]
    assert [row["file"] for row in answer.json["rows"]] == ["mine.csv"] * 4 + ["steps.csv"] * 2
    assert set(answer.json["families"]) == {"mine:lab", "steps:lab"}
    assert answer.json["by"]["hardware"]["A100"]["num_rows"] == 3
    assert "by file and family" in call("validate").out
    one = call("validate", "--family", "steps:lab", "--json").json
    assert (one["files"], one["num_rows"]) == (["steps.csv"], 2)
    assert errors(call("validate", "--family", "steps:lap", "--json"))[0] == ("family", "steps:lap", "steps:lab")


def test_every_fault_at_once(call: Callable[..., Any], data: str, tmp_path: Path) -> None:
    (tmp_path / data).write_text(f"{HEADER}\n{ROWS[0].replace('60', '-60')}\n{ROWS[1].replace('8,8', 'x,8')}\n")
    answer = call("validate", "--data", data, "--by", "sourc", "--out", data, "--leave-out", "groups", "--json")
    assert errors(answer) == [
        ("--by", "sourc", "source"),
        ("--out", data, None),
        ("leave_out", "groups", "group"),
        ("line 2, column time_us", "-60", None),
        ("line 3, column gpus", "x", None),
    ]
    assert errors(call("validate", "--by", "x", "--json"))[0][0] == "--by"


def test_files_that_are_none(call: Callable[..., Any], data: str) -> None:
    assert errors(call("validate", "--data", "absent.csv", "--json"))[0][0] == "file"
    assert errors(call("validate", "--data", "tiny.toml", "--json"))[0][0] == "file"


def test_a_bad_command_leaves_nothing_behind(call: Callable[..., Any], data: str, tmp_path: Path) -> None:
    assert call("validate", "--data", data, "--out", "out", "--by", "x").code == 2
    assert call("validate", "--data", "absent.csv", "--out", "out").code == 2
    assert not (tmp_path / "out").exists()


STEPS = """source,hardware,gpus,layers,hidden,heads,ffn,vocab,seq_len,tp,pp,micro_batch,global_batch,metric,value,unit
lab,A100,8,4,1024,16,4096,51200,1024,8,1,4,8,iteration_time,0.1,s
lab,TPU v4,8,4,1024,16,4096,51200,1024,8,1,4,8,iteration_time,0.1,s
"""


def test_steps_are_known_by_their_columns(call: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text(STEPS)
    answer = call("validate", "--data", "steps.csv", "--json", "--by", "tp", "--out", "told")
    assert answer.code == 0
    assert [row["status"] for row in answer.json["rows"]] == ["predicted", "refused"]
    assert answer.json["by"]["tp"]["8"]["num_predicted"] == 1
    with (tmp_path / "told" / "rows.csv").open() as file:
        assert [row["profile"] for row in csv.DictReader(file)] == ["megatron-core-2024", "none"]
    assert "by family" in call("validate", "--data", "steps.csv").out
    wrong = call("validate", "--data", "steps.csv", "--by", "collective", "--family", "labs", "--json")
    assert [key for key, _, _ in errors(wrong)] == ["--by", "family"]
