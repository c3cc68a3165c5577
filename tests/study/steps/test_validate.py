"""A file of measured steps from end to end."""

from __future__ import annotations

import json

import pytest

import clustersim as cs
from clustersim.study.validation import Validation
from clustersim.study.validation_text import validation_text

HEADER = (
    "id,group,family,source,hardware,nodes,gpus,model,layers,hidden,heads,ffn,gated_mlp,vocab,seq_len,tp,pp,micro_batch,"
    "global_batch,recompute,precision,metric,value,unit,how_obtained,confidence"
)
SHAPE = "GPT tiny,4,1024,16,4096,0,51200,1024"
ROWS = (
    f"a,sweep,small,lab,A100-SXM4-80GB,1,8,{SHAPE},8,1,4,16,full,fp16,iteration_time,0.1,s,read,high",
    f"b,sweep,small,lab,A100-SXM4-80GB,1,8,{SHAPE},1,1,2,16,full,fp16,iteration_time,0.05,s,read,high",
    f"c,,small,lab,A100-SXM4-80GB,1,8,{SHAPE},1,1,2,16,full,fp16,tokens_per_s_per_gpu,40000,tokens/s/GPU,memory,low",
    f"d,,other,lab,TPU v4,1,8,{SHAPE},1,1,2,16,full,fp16,iteration_time,1,s,read,high",
    f"e,,,lab,A100-SXM4-80GB,1,8,{SHAPE},16,1,2,16,full,fp16,iteration_time,1,s,read,high",
    f"f,,other,lab,H100 SXM,1,8,{SHAPE},1,8,2,16,full,bf16,iteration_time,1,s,read,high",
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    file = tmp_path_factory.mktemp("steps") / "mine.csv"
    file.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return cs.validate(file)


def test_rows_are_predicted_or_refused_with_a_reason(report: Validation) -> None:
    assert [row.status for row in report.rows] == ["predicted"] * 3 + ["refused"] * 3
    assert [row.reason for row in report.rows[3:]] == [
        "no card stands for the hardware",
        "its numbers disagree",
        "the plan is not legal here",
    ]
    assert "8 stages" in report.rows[5].detail or "layers" in report.rows[5].detail
    assert report.rows[4].family == "mine:lab"


def test_one_step_in_two_metrics(report: Validation) -> None:
    seconds, rate = report.rows[1].predicted, report.rows[2].predicted
    assert seconds is not None
    assert rate == pytest.approx(16 * 1024 / 8 / seconds)
    assert sum(report.rows[1].coverage.values()) == pytest.approx(1)


def test_json(report: Validation) -> None:
    answer = json.loads(json.dumps(report.answer("tp")))
    assert (answer["num_rows"], answer["num_predicted"], answer["num_refused"]) == (6, 3, 3)
    assert list(answer["families"]) == ["small", "other", "mine:lab"]
    small = answer["families"]["small"]
    errors = [row["error"] for row in answer["rows"][:3]]
    assert small["mape"] == pytest.approx(sum(map(abs, errors)) / 3)
    assert small["num_sweeps"] == 1
    assert small["regret"] >= 0
    assert list(answer["by"]["tp"]) == ["8", "1", "16"]
    assert answer["totals"]["read, of high or medium confidence"]["num_rows"] == 5


def test_text_and_table(report: Validation) -> None:
    text = validation_text(report)
    assert max(map(len, text.splitlines())) <= 80
    for words in ("by family", "totals", "refused", "assumed"):
        assert words in text
    table = report.table()
    assert list(table["id"]) == list("abcdef")
    assert {"predicted", "error", "profile", "topology", "assumptions", "parts"} <= set(table.columns)


def test_one_family_only(report: Validation) -> None:
    assert len(cs.validate(report.files[0].file, family="other").rows) == 2
    with pytest.raises(cs.BadInput) as error:
        cs.validate(report.files[0].file, family="smal", leave_out="group")
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == [("leave_out", None), ("family", "small")]


def test_processes_change_nothing(report: Validation) -> None:
    assert cs.validate(report.files[0].file, processes=2).answer() == report.answer()


def test_each_predicted_time_has_an_interval(report: Validation) -> None:
    first = report.rows[0]
    assert first.interval is not None
    assert first.predicted is not None
    assert first.interval[0] < first.predicted < first.interval[1]
    assert first.spread is not None
    assert first.spread > 0
    assert [row.interval is None for row in report.rows] == [row.predicted is None for row in report.rows]
    answer = report.answer()
    assert answer["families"]["small"]["inside_interval"] == sum(bool(row.inside) for row in report.rows[:3]) / 3
    assert answer["rows"][0]["interval"] == first.interval
    assert "should be inside" in validation_text(report)
