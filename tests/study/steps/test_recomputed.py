"""What is computed again, in words of sources."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import load_profile
from clustersim.study.steps.recomputed import recompute_of
from clustersim.study.steps.refusal import RefusedError


def told(text: str, stages: int = 1, profile: str = "torchtitan-2024") -> tuple[dict[str, Any], list[str]]:
    assumed: list[str] = []
    row = StepRow(line=2, recompute=text, layers=32, value=1.0)
    return recompute_of(row, load_profile(profile), stages, assumed), assumed


@pytest.mark.parametrize("text", ["none", "no", "False", "off", "No AC", "without", "0"])
def test_nothing(text: str) -> None:
    assert told(text) == ({}, [])


@pytest.mark.parametrize("text", ["True", "yes", "on", "activation checkpointing", "gradient checkpointing"])
def test_a_switch_that_is_on_is_all(text: str) -> None:
    assert told(text) == ({"recompute": "full"}, [f"recompute: full; published as {text!r}"])


def test_full_with_a_number_tells_that_it_is_all_layers() -> None:
    assert told("full") == ({"recompute": "full"}, [])
    text = "full, 10 layers"
    assert told(text) == ({"recompute": "full"}, [f"recompute: full, all layers; published as {text!r}"])


@pytest.mark.parametrize(
    ("text", "stages", "layers"),
    [("selective layer", 1, 16), ("selective, every 4 layers", 1, 8), ("selective layer", 8, 2)],
)
def test_every_so_manieth_layer(text: str, stages: int, layers: int) -> None:
    found, assumed = told(text, stages)
    assert found == {"recompute": "full", "recompute_method": "block", "recompute_layers": layers}
    assert assumed[0].startswith(f"recompute: {layers} layers a chunk")


def test_selective_is_the_profiles() -> None:
    assert told("selective op")[0]["recompute_modules"] != ("core",)
    assert told("selective", profile="megatron-core-2024")[0]["recompute_modules"] == ("core",)


@pytest.mark.parametrize("text", ["only attention", "one in four", "12 layers", "1 layer", "yesterday's"])
def test_words_that_begin_like_a_switch_are_none(text: str) -> None:
    """They were read as all layers: "on", "1" and "yes" stood at their beginning."""
    with pytest.raises(RefusedError, match="recompute"):
        told(text)


def test_unknown_words_name_the_nearest() -> None:
    with pytest.raises(RefusedError, match="recompute 'selectiv'; nearest: selective"):
        told("selectiv")
