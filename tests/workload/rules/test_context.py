"""What context parallelism asks of heads, lengths and models, and what it says of settings without effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import BadInput, Fault
from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.resolve import resolve
from clustersim.workload.rules import find_faults
from clustersim.workload.shape.sliding_window import SlidingWindow


def case(model: Model, *, seq_len: int = 128, **plan: Any) -> Case:
    return Case(
        model=model, plan=cs.ParallelPlan(dp=1, **plan), global_batch=4, micro_batch=1, seq_len=seq_len, dtype="bf16"
    )


def told(model: Model, *, seq_len: int = 128, **plan: Any) -> dict[str, Fault]:
    return {fault.key: fault for fault in find_faults(case(model, seq_len=seq_len, **plan))}


@pytest.mark.parametrize(
    ("plan", "seq_len", "nearest"),
    [
        ({"cp": 4}, 134, 136),
        ({"cp": 4, "tp": 2}, 120, 128),
        ({"cp": 4, "tp": 2, "sequence_parallel": False}, 120, None),
        ({"cp": 4, "context": "all_gather"}, 100, 96),
        ({"cp": 4, "context": "ring"}, 130, 128),
        ({"cp": 4, "context": "ulysses"}, 130, 128),
        ({"cp": 4, "context": "ulysses", "tp": 1}, 132, None),
        ({"cp": 4, "context": "hybrid", "ulysses": 2}, 134, 136),
    ],
)
def test_tokens_are_shared_evenly(llama: Model, plan: dict[str, Any], seq_len: int, nearest: int | None) -> None:
    found = told(llama, seq_len=seq_len, **plan)
    assert (found["seq_len"].nearest if found else None) == nearest
    if nearest is not None:
        assert not told(llama, seq_len=nearest, **plan)


@pytest.mark.parametrize(
    ("plan", "key", "nearest"),
    [
        ({"cp": 8, "context": "ulysses"}, "plan.cp", 4),
        ({"cp": 4, "tp": 2, "context": "ulysses"}, "plan.cp", 2),
        ({"cp": 4, "tp": 2, "context": "hybrid", "ulysses": 4}, "plan.ulysses", 2),
        ({"cp": 4, "context": "hybrid", "ulysses": 3}, "plan.ulysses", 2),
        ({"cp": 4, "context": "hybrid"}, "plan.ulysses", 1),
        ({"cp": 2, "attention": "unfused"}, "plan.attention", "flash"),
        ({"cp": 2, "context": "rings"}, "plan.context", "ring"),
        ({"cp": 2, "context": "hybrid", "ulysses": 0}, "plan.ulysses", 1),
    ],
)
def test_nearest_legal_value(llama: Model, plan: dict[str, Any], key: str, nearest: object) -> None:
    found = told(llama, **plan)
    assert set(found) == {key}
    assert found[key].nearest == nearest
    assert not told(llama, **{**plan, key.removeprefix("plan."): nearest})


def test_a_window_needs_keys_of_all(llama: Model) -> None:
    windowed = replace(llama, window=SlidingWindow(tokens=64))
    assert told(windowed, cp=2)["plan.context"].nearest == "all_gather"
    for context in ("all_gather", "ulysses"):
        assert not told(windowed, cp=2, context=context)
    assert not told(windowed, seq_len=64, cp=2)


def test_parts_that_no_way_is_written_for_are_refused_by_name(llama: Model) -> None:
    found = told(replace(llama, positions="relative", relative_buckets=32), cp=2)
    assert list(found) == ["plan.cp"]
    assert "relative positions" in found["plan.cp"].rule


def test_the_nearest_length_has_learned_positions(gpt: Model) -> None:
    """6 parts of 2: 132 would be nearer than 120."""
    assert told(gpt, seq_len=127, cp=6)["seq_len"].nearest == 120


def test_a_legal_plan_resolves_and_tells_what_does_nothing(llama: Model) -> None:
    assert resolve(case(llama, cp=2, tp=2)).notes == ()
    assert resolve(case(llama, context="ring", ulysses=2)).notes == (
        "plan.context: no effect with cp 1",
        "plan.ulysses: no effect with cp 1",
    )
    (note,) = resolve(case(llama, cp=2, ulysses=2)).notes
    assert note.startswith("plan.ulysses: no effect")


def test_devices_are_counted_with_cp(llama: Model) -> None:
    with pytest.raises(BadInput, match=r"tp 2 x cp 2 x pp 1 x dp 1 = 4"):
        resolve(replace(case(llama, tp=2, cp=2), num_devices=8))
