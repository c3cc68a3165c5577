"""Callables and policies in the place of their names."""

from __future__ import annotations

from typing import Any

from clustersim.library.keys import KEYS
from clustersim.study.named_values import named_values
from clustersim.workload.schedule import gpipe


def values(**given: Any) -> dict[str, Any]:
    return dict.fromkeys(KEYS) | {f"plan.{name}": value for name, value in given.items()}


def test_a_callable_stands_for_its_name_and_a_short_name_stays() -> None:
    full, faults = named_values(values(schedule="clustersim.workload.schedule:gpipe"), (), None)
    assert (full["plan.schedule"], faults) == (gpipe, [])
    full, faults = named_values(values(schedule="gpipe"), (), None)
    assert (full["plan.schedule"], faults) == ("gpipe", [])


def test_what_is_not_found_is_open_and_told() -> None:
    given = values(schedule="clustersim.workload.schedule:gpip", sharding="no.such:thing")
    full, faults = named_values(given, (), None)
    assert (full["plan.schedule"], full["plan.sharding"]) == (None, None)
    assert [fault.key for fault in faults] == ["plan.schedule", "plan.sharding"]
    assert given["plan.sharding"] == "no.such:thing"


def test_what_is_refused_already_is_not_looked_for() -> None:
    full, faults = named_values(values(schedule="no.such:thing"), ("plan.schedule",), None)
    assert (full["plan.schedule"], faults) == (None, [])


def test_tables_become_policies() -> None:
    given = values() | {"plan.offload.policy": "zero-offload", "plan.checkpoint.every": 2}
    full, faults = named_values(given, (), None)
    assert not [key for key in full if key.startswith(("plan.offload.", "plan.checkpoint."))]
    assert type(full["plan.offload"]).__name__ == "ZeroOffload"
    assert "plan.checkpoint" not in full  # it could not be made
    assert [fault.key for fault in faults] == ["plan.checkpoint.policy"]
