"""Flows that cannot be are refused, each with its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustersim.collective.ring import ring
from clustersim.collective.select import ALGORITHMS
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.collective.well_formed import require_well_formed
from clustersim.faults import BadInput

FOUR = GroupShape(node=np.zeros(4, dtype=np.int64))


def sound() -> Traffic:
    return ring("all_gather", 1000, FOUR)


def with_phase(**changes: object) -> Traffic:
    phase: Phase = replace(sound().phases[0], **changes)  # type: ignore[arg-type]
    return replace(sound(), phases=(phase,))


def faults(traffic: Traffic) -> list[tuple[str, object, object]]:
    with pytest.raises(BadInput) as caught:
        require_well_formed(traffic, "all_gather", 4)
    return [(f.key.removeprefix("ring.all_gather."), f.value, f.nearest) for f in caught.value.faults]


@pytest.mark.parametrize(
    ("name", "kind", "node"),
    [
        ("ring", "all_reduce", [0, 1, 0, 1, 4, 4, 4]),
        ("ring", "broadcast", [0, 0, 2, 2]),
        ("tree", "all_reduce", [0, 1, 0, 1, 4, 4, 4]),
        ("hierarchical", "all_reduce", [0, 0, 2, 2]),
        ("direct", "all_to_all", [0, 1, 0, 1, 4, 4, 4]),
        ("point_to_point", "send_recv", [0, 1]),
    ],
)
def test_those_of_the_library_are_well_formed(name: str, kind: str, node: list[int]) -> None:
    made = ALGORITHMS[name](kind, 12345, GroupShape(node=np.array(node)))
    assert sum(phase.nbytes.sum() for phase in made.phases) >= 12345
    assert require_well_formed(made, kind, len(node)) is made


def test_a_position_that_no_member_has() -> None:
    assert faults(with_phase(destination=np.array([1, 2, 3, 4]))) == [("phases[0].destination", 4, 3)]
    assert faults(with_phase(source=np.array([-1, 1, 2, 3]))) == [("phases[0].source", -1, 0)]


def test_a_flow_to_itself() -> None:
    assert faults(with_phase(destination=np.array([1, 1, 3, 0]))) == [("phases[0].destination", 1, None)]


def test_negative_and_broken_bytes() -> None:
    assert faults(with_phase(nbytes=np.array([1, 2, -3, 4]))) == [("phases[0].nbytes", -3, 0)]
    assert faults(with_phase(nbytes=np.full(4, 0.5))) == [("phases[0].nbytes", "float64", "int64")]


def test_shapes() -> None:
    assert faults(with_phase(nbytes=np.ones(3, dtype=np.int64))) == [("phases[0].nbytes", (3,), None)]
    assert faults(with_phase(source=np.int64(0)))[0] == ("phases[0].source", (), None)


@pytest.mark.parametrize("steps", [-3, 1.5, float("nan"), True, 1 << 60])
def test_steps_that_cannot_be_counted(steps: object) -> None:
    """Negative ones used to make a collective end before it began."""
    ((key, _, nearest),) = faults(with_phase(num_steps=steps))
    assert (key, nearest) == ("phases[0].num_steps", 1 << 32 if steps == 1 << 60 else 0)


@pytest.mark.parametrize(("name", "nearest"), [("num_sms", 0), ("num_flows", 1), ("own_nbytes", 0)])
def test_negative_counts(name: str, nearest: int) -> None:
    assert faults(replace(sound(), **{name: -1})) == [(name, -1, nearest)]  # type: ignore[arg-type]


def test_all_at_once() -> None:
    wrong = replace(with_phase(nbytes=np.full(4, -1)), memory_nbytes=np.zeros(5, dtype=np.int64))
    assert [key for key, _, _ in faults(wrong)] == ["memory_nbytes", "phases[0].nbytes"]
