"""Pipeline schedules in words of sources."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.schedules import schedule_of


def told(notes: str, pp: int = 8, vpp: int | None = None) -> dict[str, Any]:
    return schedule_of(StepRow(line=2, notes=notes, vpp=vpp, value=1.0), pp, [])


@pytest.mark.parametrize(
    ("notes", "name"),
    [
        ("ZB-2p; Megatron-LM", "zb-h2"),
        ("Megatron-LM with ZB-1p", "zb-h1"),
        ("ZB-H2", "zb-h2"),
        ("180K GPU hours; DualPipe", "dualpipe"),
        ("DualPipeV", "dualpipev"),
        ("schedule: GPipe", "gpipe"),
    ],
)
def test_names_wherever_they_stand(notes: str, name: str) -> None:
    assert told(notes) == {"schedule": name, "vpp": None}
    assert told(notes, pp=1) == {}


def test_1f1b_is_what_the_chunks_say() -> None:
    assert told("1F1B; Megatron-LM") == told("") == {}
    assert told("schedule 1f1b", vpp=4) == {"vpp": 4}
    assert told("schedule interleaved 1F1B", vpp=4) == {"schedule": "interleaved", "vpp": 4}


def test_a_schedule_that_nobody_knows_is_refused() -> None:
    with pytest.raises(RefusedError, match="schedule 'dualpipex'; nearest: dualpipe"):
        told("schedule dualpipex")
    with pytest.raises(RefusedError, match="schedule 'chimera'; one of gpipe, 1f1b"):
        told("schedule Chimera")


@pytest.mark.parametrize(
    "notes", ["learning rate schedule cosine", "schedule: cosine, warm-up of 2,000 steps", "LR schedule: WSD, 1F1B"]
)
def test_schedules_of_learning_rates_are_none_of_passes(notes: str) -> None:
    """They were refused as schedules that nobody knows."""
    assert told(notes, vpp=2) == {"vpp": 2}
    assert told(f"{notes}; schedule DualPipe")["schedule"] == "dualpipe"
