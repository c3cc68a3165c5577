"""Words on how states are split: what they mean, and those that mean nothing here."""

from __future__ import annotations

from typing import Any

import pytest

from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import load_profile
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.sharding import sharding_of

PROFILE = load_profile("megatron-core-2024")


def told(text: str, stage: int | None = None, ranks: int = 16) -> tuple[dict[str, Any], list[str]]:
    assumed: list[str] = []
    row = StepRow(line=2, source="lab", sharding=text, zero_stage=stage, value=1.0)
    return sharding_of(row, PROFILE, ranks, assumed), assumed


@pytest.mark.parametrize(
    ("text", "stage", "fields"),
    [
        ("ZeRO-3", None, {"zero": 3}),
        ("ZeRO stage 2", None, {"zero": 2}),
        ("zero1", 1, {"zero": 1}),
        ("", 2, {"zero": 2}),
        ("distributed optimizer", None, {"zero": 1}),
        ("distributed optimizer (launcher default)", 1, {"zero": 1}),
        ("full shard", None, {"fsdp": True}),
        ("FSDP + TP8", 3, {"fsdp": True}),
        ("FSDP 8 x DP 2", 3, {"fsdp": True, "hsdp": 8}),
        ("HSDP 8", None, {"fsdp": True, "hsdp": 8}),
        ("FSDP 16 x DP 1", 3, {"fsdp": True}),
        ("fsdp_zero2", None, {"fsdp": True, "reshard": False}),
        ("FSDP ZeRO-3", 3, {"fsdp": True}),
        ("DDP", None, {"zero": 0}),
        ("NO_SHARD", None, {"zero": 0}),
    ],
)
def test_words_that_are_understood(text: str, stage: int | None, fields: dict[str, Any]) -> None:
    assert told(text, stage) == (fields, [])


@pytest.mark.parametrize("text", ["HSDP", "HYBRID_SHARD", "FSDP hybrid shard"])
@pytest.mark.parametrize(("degrees", "of"), [({}, 8), ({"nodes": 4, "gpus": 16}, 4), ({"tp": 2}, 4)])
def test_a_hybrid_without_a_number_is_a_node(text: str, degrees: dict[str, int], of: int) -> None:
    assumed: list[str] = []
    row = StepRow(line=2, source="lab", hardware="H100 SXM", sharding=text, value=1.0, **degrees)  # type: ignore[arg-type]
    assert sharding_of(row, PROFILE, 16, assumed) == {"fsdp": True, "hsdp": of}
    assert assumed == [f"sharding: over the {of} replicas of a node, as HYBRID_SHARD; published as {text!r}"]


def test_nothing_is_split_over_one_rank() -> None:
    assert told("ZeRO-3", 3, ranks=1) == ({"zero": 0}, [])


@pytest.mark.parametrize(
    ("text", "stage", "other"),
    [("banana", 1, "banana"), ("FSDP with wings", 3, "with wings"), ("ZeRO-1; Zebra++", 1, "zebra")],
)
def test_words_that_are_not_understood_are_told(text: str, stage: int, other: str) -> None:
    _, assumed = told(text, stage)
    assert assumed == [f"sharding: {other!r} is not understood; published as {text!r}"]


def test_stages_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(RefusedError, match="zero_stage 1 and sharding 'ZeRO-3'"):
        told("ZeRO-3", 1)
