"""The page of what goes with what says what the simulator does."""

from __future__ import annotations

from pathlib import Path

from clustersim.study.combinations import Answer, page, pairs

PAGE = Path(__file__).parents[2] / "docs" / "combinations.md"


def test_the_page_is_what_the_script_writes() -> None:
    written = page(list(pairs()))
    assert PAGE.read_text() == written, "write it again: python -m clustersim.study.combinations > docs/combinations.md"


def test_a_pair_is_refused_idle_or_runs() -> None:
    settings = {
        "whole": {"attention": "unfused"},
        "shared": {"cp": 2},
        "split": {"zero": 1},
        "alone": {"dp": 1, "pp": 4, "tp": 4},
        "other": {"cp": 1},
    }
    found = {(answer.first, answer.second): answer for answer in pairs(settings)}
    assert ("shared", "other") not in found  # two values for one word
    assert "must be flash" in found["whole", "shared"].refused[0]
    assert "no effect with dp 1" in found["split", "alone"].idle[0]
    assert found["shared", "split"] == Answer(first="shared", second="split")


def test_signs() -> None:
    answers = [
        Answer(first="a", second="a"),
        Answer(first="b", second="b"),
        Answer(first="a", second="b", refused=("`plan.b` must be 1",)),
        Answer(first="c", second="c", idle=("plan.c: no effect",)),
    ]
    text = page(answers)
    assert "| 2 b | r1 | + | |" in text
    assert "| 3 c |  |  | e1 |" in text
    assert "- **r1** `plan.b` must be 1" in text
    assert "- **e1** plan.c: no effect" in text
