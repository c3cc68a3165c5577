"""Measured rows that differ in an overlap switch alone: the gain has the right sign and at least half of its size."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from clustersim.library.measurements import measurement_files
from clustersim.readers.step_rows import StepRow, read
from clustersim.study.steps.predict import predict

PAIRS = [
    # Megatron-Bridge: exchanges of experts beside another micro-batch, 16 H100
    ("mb-qwen30-epoverlap-off", "mb-qwen30-epoverlap-on"),
    # torchtitan: asynchronous tensor parallelism over 8 ranks, 64 H100
    ("titan-8b-64-tp8-vanilla-bf16", "titan-8b-64-tp8-async-bf16"),
    ("titan-8b-64-tp8-vanilla-float8tensorwise", "titan-8b-64-tp8-async-float8tensorwise"),
    ("titan-8b-64-tp8-vanilla-float8rowwise", "titan-8b-64-tp8-async-float8rowwise"),
]
"""Rows without and with the overlap. Those that also change schedule, policy or compiler are no such pairs."""

SWITCHES = (("ep overlap off", "ep overlap on"), ("vanilla tp", "async tp"))
"""Words of the notes."""


@pytest.fixture(scope="module")
def rows() -> dict[str, StepRow]:
    (path,) = (path for path in measurement_files() if path.name == "e2e_training.csv")
    return {row.id: row for row in read(Path(path))[0]}


@pytest.mark.parametrize(
    ("off", "on"), [*PAIRS[:2], *(pytest.param(*pair, marks=pytest.mark.accuracy) for pair in PAIRS[2:])]
)
def test_a_pair(rows: dict[str, StepRow], off: str, on: str) -> None:
    without, with_it = predict([rows[off], rows[on]])
    assert without.step is not None
    assert with_it.step is not None
    assert with_it.measured is not None
    per_second = with_it.row.metric.startswith("tokens")
    measured = rows[on].value / rows[off].value if per_second else rows[off].value / rows[on].value
    predicted = without.step.seconds / with_it.step.seconds
    assert predicted - 1 >= (measured - 1) / 2 > 0


def test_these_are_all_pairs(rows: dict[str, StepRow]) -> None:
    found = []
    told = [row for row in rows.values() if any(words in row.notes.lower() for pair in SWITCHES for words in pair)]
    for first, second in combinations(told, 2):
        same = (first.source, first.model, first.gpus, first.precision) == (
            second.source,
            second.model,
            second.gpus,
            second.precision,
        )
        notes = [row.notes.lower() for row in (first, second)]
        if same and any(off in notes[0] and on in notes[1] for off, on in SWITCHES):
            found.append((first.id, second.id))
    assert sorted(found) == sorted(PAIRS)
