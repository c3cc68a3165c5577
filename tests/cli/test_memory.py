"""``clustersim memory``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FIELDS = {
    "fits",
    "worst_rank",
    "peak_bytes",
    "capacity_bytes",
    "peak_op",
    "by_category",
    "by_tier",
    "stages",
    "largest_micro_batch",
}


def test_json(call: Callable[..., Any]) -> None:
    answer = call("memory", "tiny.toml", "--json")
    assert answer.code == 0
    assert answer.json.keys() >= FIELDS
    assert answer.json["fits"] is True
    assert sum(answer.json["by_category"].values()) == answer.json["peak_bytes"]
    assert answer.json["largest_micro_batch"] == 2  # 16 sequences over dp 8


def test_text_says_the_same(call: Callable[..., Any]) -> None:
    answer = call("memory", "tiny.toml")
    assert answer.code == 0
    assert "largest micro-batch that fits: 2" in answer.out


def test_what_does_not_fit_is_told_and_fails(call: Callable[..., Any]) -> None:
    asked = ("memory", "--model", "llama-2-7b", "--topology", "dgx-a100", "--set", "global_batch=8")
    answer = call(*asked, "--set", "seq_len=4096", "--json")
    assert answer.code == 1
    assert (answer.json["fits"], answer.json["largest_micro_batch"]) == (False, 0)
    assert answer.json["out_of_memory"]["over_bytes"] == answer.json["peak_bytes"] - answer.json["capacity_bytes"]


def test_bad_input(call: Callable[..., Any]) -> None:
    answer = call("memory", "tiny.toml", "--set", "plan.tpp=2", "--set", "seq_len=nan", "--json")
    assert answer.code == 2
    assert {error["key"] for error in answer.json["errors"]} == {"plan.tpp", "seq_len"}
