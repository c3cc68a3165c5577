"""A file of measured collectives beside its predictions."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import clustersim as cs
from clustersim.analysis.accuracy import Accuracy
from clustersim.collective.explanations import largest_payload
from clustersim.faults import BadInput
from clustersim.hardware.communication import Communication
from clustersim.study import left_out, prediction
from clustersim.study.calibration import Calibration
from clustersim.study.prediction import REASONS
from clustersim.study.validate import input_faults
from clustersim.study.validate_collectives import COLLECTIVES, LARGE, decade
from clustersim.study.validation import Validation

HEADER = "id,group,source,hardware,nodes,gpus,gpus_per_node,inter_link,collective,algo,size_bytes,time_us,confidence"
ROWS = (
    "a,one,lab A,H100,1,8,8,,all_reduce,,1048576,60,high",
    "b,one,lab A,H100,1,8,8,,all_reduce,,1073741824,4000,high",
    "c,two,lab A,A100,1,8,8,,alltoall,,4096,20,low",
    "d,two,PyTorch at lab B,A100,2,16,8,InfiniBand (assumed),all_reduce,,67108864,900,medium",
    "e,three,PyTorch at lab B,A100,2,16,8,8x200 Gb/s,all_reduce,Ring,67108864,900,",
    "f,three,lab C,MI250X,1,8,8,,all_reduce,,67108864,500,high",
)
REFUSED = {
    "no size": "r0,x,lab,H100,1,8,8,,all_reduce,,,60,high",
    "no time": "r1,x,lab,H100,1,8,8,,all_reduce,,1024,,high",
    "no number of ranks": "r2,x,lab,H100,1,,8,,all_reduce,,1024,60,high",
    "one rank uses no link": "r3,x,lab,H100,1,1,8,,all_reduce,,1024,60,high",
    "the collective is not modelled": "r4,x,lab,H100,1,8,8,,moe_dispatch,,1024,60,low",
    "no card stands for the hardware": "r5,x,lab,Abacus,1,8,8,,all_reduce,,1024,60,high",
    "more ranks on a node than it has GPUs": "r6,x,lab,H100,1,12,12,,all_reduce,,1024,60,high",
    "its numbers of nodes and ranks disagree": "r7,x,lab,H100,1,16,8,,all_reduce,,1024,60,high",
    "too large to be laid out": f"r8,x,lab,H100,,{2**40},8,,all_reduce,,1024,60,high",
    "does not run on its cluster": "r9,x,lab,A100,1,8,8,,all_reduce,NVLS,1024,60,high",
}


def write(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "mine.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


@pytest.fixture
def report(tmp_path: Path) -> Validation:
    return cs.validate(write(tmp_path, *ROWS, *REFUSED.values()))


def test_every_row_is_there_in_its_order(report: Validation) -> None:
    assert [row.id for row in report.rows] == [*"abcdef", *(f"r{k}" for k in range(10))]
    assert [row.line for row in report.rows] == list(range(2, 18))
    assert [row.measured for row in report.rows[:3]] == [60, 4000, 20]
    assert {(row.metric, row.unit) for row in report.rows} == {("time", "us")}
    assert {row.family for row in report.rows[:3]} == {"mine:lab A"}


def test_a_prediction_is_what_explain_says(report: Validation) -> None:
    topology = cs.load_topology("dgx-h100", nodes=1)
    for row in report.rows[:2]:
        assert row.nbytes is not None
        why = cs.explain("all_reduce", row.nbytes, topology)
        assert row.predicted == pytest.approx(why.seconds * 1e6, rel=1e-3)
        assert row.measured is not None
        assert row.error == pytest.approx(row.predicted / row.measured - 1)


def test_each_refusal_has_its_reason(report: Validation) -> None:
    refused = {row.id: row for row in report.rows if row.status == "refused"}
    assert {row.reason: row.id for row in refused.values()} == {
        reason: text.partition(",")[0] for reason, text in REFUSED.items()
    }
    assert set(REFUSED) == set(REASONS)
    for row in refused.values():
        assert (row.predicted, row.error, row.coverage, row.in_domain) == (None, None, {}, False)
        assert row.detail
    assert all(not row.reason and not row.detail for row in report.rows if row.status == "predicted")


def test_all_that_refuses_a_row_is_told_at_once(tmp_path: Path) -> None:
    rows = ["a,g,s,abacus,3,16,5,,all_reduce,,1024,60,high", "b,g,s,abacus,1,1,1,,dance,,,60,high"]
    apart, aside = cs.validate(write(tmp_path, *rows)).rows
    assert apart.reason == "its numbers of nodes and ranks disagree"
    assert apart.detail == "16 ranks, 5 on each of 3 nodes; no card stands for the hardware 'abacus'"
    assert aside.reason == "the collective is not modelled"
    assert all(part in aside.detail for part in ("dance", "no size", "one rank", "abacus"))


def test_payloads_that_cannot_be_counted_are_refused(tmp_path: Path) -> None:
    most = largest_payload(8)
    rows = [f"x{k},g,s,H100,1,8,8,,all_reduce,,{most + k},1e12,high" for k in (0, 1)]
    fits, too_large = cs.validate(write(tmp_path, *rows)).rows
    assert (fits.status, too_large.reason) == ("predicted", "too large to be laid out")


def test_what_is_assumed_and_what_is_out_of_domain(report: Validation) -> None:
    rows = {row.id: row for row in report.rows}
    kinds = {name: [text.partition(":")[0] for text in rows[name].assumptions] for name in "acdef"}
    assert kinds == {
        "a": ["card"],
        "c": ["card"],
        "d": ["card", "unknown network", "clock"],
        "e": ["card", "network", "clock", "algorithm"],
        "f": ["card", "library"],
    }
    assert "InfiniBand (assumed)" in rows["d"].assumptions[1]
    assert {name: rows[name].in_domain for name in "adef"} == {"a": True, "d": False, "e": True, "f": False}
    assert [rows[name].labels["network"] for name in "ade"] == ["not used", "not known", "known"]
    assert rows["a"].coverage == {"measured": 0, "interpolated": 0, "modelled": 1, "assumed": 0}
    assert rows["f"].coverage == {"measured": 0, "interpolated": 0, "modelled": 0, "assumed": 1}


def test_several_nodes_without_a_word_on_their_network(tmp_path: Path) -> None:
    (row,) = cs.validate(write(tmp_path, ROWS[4].replace("8x200 Gb/s", ""))).rows
    assert (row.status, row.in_domain, row.labels["network"]) == ("predicted", False, "not known")


def test_ranks_of_a_node_follow_from_nodes(tmp_path: Path) -> None:
    text = "x{},g,s,H100,2,8,{},8x400,all_reduce,,1048576,60,high"
    (given, derived) = cs.validate(write(tmp_path, text.format(0, 4), text.format(1, ""))).rows
    assert given.predicted == derived.predicted
    assert not any(note.startswith("placement") for note in given.assumptions)
    assert any(note.startswith("placement") for note in derived.assumptions)


def test_a_family_of_ones_own_and_rows_without_names(tmp_path: Path) -> None:
    header = "family,hardware,gpus,collective,size_bytes,time_us"
    (first, second) = cs.validate(
        write(tmp_path, "mine,H100,8,all_reduce,1024,20", ",H100,8,all_reduce,1024,20", header=header)
    ).rows
    assert (first.family, first.id) == ("mine", "line 2")
    assert (second.family, second.id) == ("mine:no source", "line 3")


@pytest.mark.parametrize("by", COLLECTIVES.labels)
def test_groups_are_parts_of_the_whole(report: Validation, by: str) -> None:
    groups = report.groups(by)
    assert sorted(row.line for rows in groups.values() for row in rows) == [row.line for row in report.rows]
    whole = Accuracy.of([row.error for row in report.rows])
    parts = [Accuracy.of([row.error for row in rows]) for rows in groups.values()]
    assert sum(part.num_predicted for part in parts) == whole.num_predicted
    total = sum(part.mape * part.num_predicted for part in parts if part.mape is not None)
    assert whole.mape is not None
    assert total == pytest.approx(whole.mape * whole.num_predicted)


def test_totals_are_those_of_the_rows(report: Validation) -> None:
    totals = report.totals()
    lines = {name: [row.line for row in rows] for name, rows in totals.items()}
    assert lines["all rows"] == [row.line for row in report.rows]
    four = [f"{size}{low}" for size in ("1 MiB and above", "below 1 MiB") for low in ("", ", low confidence")]
    sized = sorted(line for name in four for line in lines[name])
    assert sized == [row.line for row in report.rows if row.nbytes is not None]
    for name in four:
        unknown = {row.line for row in totals[name] if row.labels["network"] == "not known"}
        assert set(lines[f"{name}, known networks"]) == set(lines[name]) - unknown
        assert all((row.nbytes or 0) >= LARGE for row in totals[name]) == name.startswith("1 MiB")
    assert [row.id for row in totals["below 1 MiB, low confidence"]] == ["c", "r4"]
    assert "d" in {row.id for row in totals["1 MiB and above"]}
    assert "d" not in {row.id for row in totals["1 MiB and above, known networks"]}


def test_sizes_come_in_their_order(report: Validation) -> None:
    assert list(report.groups("size")) == [
        "1 kB to 10 kB",
        "1 MB to 10 MB",
        "10 MB to 100 MB",
        "1 GB to 10 GB",
        "no size",
    ]


@pytest.mark.parametrize(
    ("nbytes", "name"),
    [
        (None, "no size"),
        (8, "below 1 kB"),
        (999, "below 1 kB"),
        (1000, "1 kB to 10 kB"),
        (99_999, "10 kB to 100 kB"),
        (100_000, "100 kB to 1 MB"),
        (2**30, "1 GB to 10 GB"),
        (2**49, "100 TB to 1 PB"),
    ],
)
def test_decades(nbytes: int | None, name: str) -> None:
    assert decade(nbytes) == name


def test_the_answer_has_what_the_rows_have(report: Validation) -> None:
    answer = json.loads(json.dumps(report.answer("collective"), allow_nan=False))
    assert (answer["num_rows"], answer["num_predicted"], answer["num_refused"]) == (16, 6, 10)
    assert {name: family["num_rows"] for name, family in answer["families"].items()} == {
        "mine:lab A": 3,
        "mine:PyTorch at lab B": 2,
        "mine:lab C": 1,
        "mine:lab": 10,
    }
    assert answer["families"]["mine:lab"]["mape"] is None
    assert set(answer["by"]) == {"collective"}
    assert set(answer["rows"][0]) >= {
        *("id", "file", "family", "source", "metric", "unit", "measured", "predicted", "error", "status", "reason"),
        *("in_domain", "coverage", "assumptions"),
    }
    assert all(sum(row["coverage"].values()) == 1 for row in answer["rows"] if row["status"] == "predicted")


def test_the_table_has_a_row_each(report: Validation) -> None:
    table = report.table()
    assert list(table["line"]) == [row.line for row in report.rows]
    assert list(table["status"]) == [row.status for row in report.rows]
    assert {*COLLECTIVES.labels, "nbytes", "error", "reason", "assumptions"} <= set(table.columns)


def test_every_fault_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "a,,lab,H100,1,8,8,,all_reduce,,1024,-3,high", "b,,lab,H100,1,x,8,,all_reduce,,1024,4,high")
    with pytest.raises(BadInput) as caught:
        cs.validate(path, leave_out="groups")
    assert [(fault.key, fault.nearest) for fault in caught.value.faults] == [
        ("leave_out", "group"),
        ("line 2, column time_us", None),
        ("line 3, column gpus", None),
    ]
    assert input_faults(path, "groups") == list(caught.value.faults)


def test_what_is_left_out_must_be_given(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS[0], ROWS[1].replace("one", ""))
    assert [fault.key for fault in input_faults(path, "group")] == ["line 3, column group"]
    assert input_faults(path, "source") == input_faults(path) == []


def test_another_table_is_named_as_such(tmp_path: Path) -> None:
    path = write(tmp_path, "x,3", header="model,value")
    first, *others = input_faults(path)
    assert (first.key, first.value) == ("file", "mine.csv")
    assert [fault.key.split()[-1] for fault in others] == ["hardware", "gpus", "collective", "size_bytes", "time_us"]


def test_a_group_is_judged_by_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibration is replaced by one that notes what it sees, and shows it in the launch that it returns.

    First it sees the rows of one node, then for each group those of others that its nodes or its network have.
    """
    seen: list[set[str]] = []

    def calibrate(rows: list[prediction.Measured], start: Calibration) -> Calibration:
        seen.append({row.row.id for row in rows})
        nodes: dict[str, Communication] = {
            name: replace(card, launch_latency=1.0, simple_launch_latency=1.0, message_launch_latency=1.0)
            for name, card in start.nodes.items()
        }
        return replace(start, nodes=nodes)

    monkeypatch.setattr(left_out, "calibrate", calibrate)
    done: list[float] = []
    fourth = "g,four,lab C,H100,1,8,8,,all_reduce,,1048576,60,high"
    path = write(tmp_path, *ROWS, fourth, REFUSED["does not run on its cluster"], REFUSED["no time"])
    report = cs.validate(path, leave_out="group", progress=done.append)
    assert seen == [{"a", "b", "f", "g"}, {"g"}, {"e"}, {"d"}, {"a", "b"}]  # c is of low confidence
    assert done == pytest.approx([2 / 7, 4 / 7, 6 / 7, 1])
    for row in report.rows:
        if row.status == "refused":
            assert row.left_out_error is None
        else:
            assert row.left_out_error is not None
            assert row.measured is not None
            assert row.measured * (1 + row.left_out_error) > 1e6
    assert all("left_out" in family for family in report.answer()["families"].values())
    seen.clear()
    cs.validate(path, leave_out="source")
    assert seen == [{"a", "b", "f", "g"}, {"g"}, set(), {"a", "b"}]


def test_others_tell_what_a_group_would_take(tmp_path: Path) -> None:
    """Two machines that both take twice the predicted time: calibrated on one, the other comes out closer."""
    pytest.importorskip("scipy")
    topology = cs.load_topology("dgx-a100", nodes=1)
    rows = []
    for group in ("x", "y"):
        for power in range(24, 31, 2):
            took = 2 * cs.explain("all_reduce", 1 << power, topology).seconds * 1e6
            rows.append(f"{group}{power},{group},s,A100,1,8,8,,all_reduce,,{1 << power},{took},high")
    report = cs.validate(write(tmp_path, *rows), leave_out="group")
    for row in report.rows:
        assert row.error is not None
        assert row.error == pytest.approx(-0.5, abs=1e-3)
        assert row.left_out_error is not None
        assert abs(row.left_out_error) < 0.6 * abs(row.error)
