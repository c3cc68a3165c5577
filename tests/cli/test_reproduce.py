"""``clustersim reproduce``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_one_system_as_json(call: Callable[..., Any]) -> None:
    answer = call("reproduce", "19", "--json")
    assert answer.code == 0
    first, *_ = answer.json["systems"]
    assert (first["number"], first["name"], first["job"]) == ("19", "two-sites", "gpt2-medium-two-sites")
    assert first["within"] is True


def test_one_that_is_not_simulated_yet(call: Callable[..., Any]) -> None:
    answer = call("reproduce", "tensor-lifetimes")
    assert answer.code == 0
    assert "7  tensor-lifetimes: not simulated yet" in answer.out


def test_an_unknown_system(call: Callable[..., Any]) -> None:
    answer = call("reproduce", "frontir", "--json")
    assert answer.code == 2
    assert answer.json["errors"][0]["nearest"] == "frontier"
