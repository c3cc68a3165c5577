"""Rows whose configuration is that of a row of another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from clustersim.readers import step_rows
from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.configuration import with_configurations

HEAD = "id,source,hardware,gpus,model,layers,tp,metric,value,unit,notes\n"
STEPS = """\
lab-a-8,lab,H100 of the lab,8,llama,4,2,iteration_time,1.0,s,eager
lab-b-16-first,lab,H100,16,llama,5,4,iteration_time,1.0,s,
lab-b-16-second,lab,H100,16,llama,6,4,iteration_time,1.0,s,
lab-c-32-only,lab,H100,32,llama,7,8,iteration_time,1.0,s,
"""
NOTE = "configuration: same key with prefix lab- in steps.csv"


@pytest.fixture
def rows(tmp_path: Path) -> dict[str, StepRow]:
    (tmp_path / "steps.csv").write_text(HEAD + STEPS)
    file = tmp_path / "memory.csv"
    lines = [f"m-{key},lab,H100,,{key},,,peak memory,9.0,GiB,{NOTE}\n" for key in ("a-8", "b-16", "c-32", "d-64")]
    lines.append("m-x,lab,H100,,a-8,,,peak memory,9.0,GiB,configuration: id with prefix lab- in gone.csv\n")
    file.write_text(HEAD + "".join(lines))
    return {row.id: row for row in with_configurations(file, step_rows.read(file)[0])}


def test_what_is_configured_comes_from_the_other_row_and_what_was_measured_does_not(rows: dict[str, StepRow]) -> None:
    row = rows["m-a-8"]
    assert (row.gpus, row.layers, row.tp, row.model, row.hardware) == (8, 4, 2, "llama", "H100 of the lab")
    assert (row.metric, row.value, row.unit, row.line) == ("peak memory", 9.0, "GiB", 2)
    assert row.notes == f"{NOTE}; eager"


def test_an_id_may_go_on_where_only_one_does(rows: dict[str, StepRow]) -> None:
    assert (rows["m-c-32"].gpus, rows["m-c-32"].layers) == (32, 7)
    assert rows["m-b-16"].gpus is None


def test_what_is_not_there_leaves_a_row_as_it_is(rows: dict[str, StepRow]) -> None:
    assert rows["m-d-64"].model == "d-64"
    assert rows["m-x"].gpus is None
