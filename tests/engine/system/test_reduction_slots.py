"""Switches hold so many trees; who gets none runs another algorithm, and says why."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest

import clustersim as cs

FOUR = {"nodes": 4, "fabric": "fat_tree", "fabric.sharp": True}


def job(star: ModuleType, groups: Sequence[Sequence[int]], algorithm: str | None = None) -> cs.Job:
    program = star.program(star.collective("all_reduce", 1 << 28, algorithm=algorithm))
    num_ranks = sum(map(len, groups))
    families = (star.groups("dp", *groups),)
    return cs.Job(name="j", programs=(program,), program_of=np.zeros(num_ranks, np.int64), families=families)


def ran(run: cs.Result) -> list[tuple[str, str]]:
    return list(zip(run.collectives["algorithm"], run.collectives["reason"], strict=True))


@pytest.mark.parametrize("fold", [True, False])
def test_groups_beyond_the_slots_of_a_switch_run_without_it(star: ModuleType, fold: bool) -> None:
    """Eight groups of four nodes over one leaf of Quantum switches, which hold one tree."""
    cluster = cs.load_topology("dgx-a100", **FOUR)
    assert cluster.in_network is not None
    assert cluster.in_network.slots == 1
    lanes = [[gpu + 8 * node for node in range(4)] for gpu in range(8)]
    ordered = sorted(range(32), key=lambda rank: (rank % 8, rank // 8))
    assert [rank for lane in lanes for rank in lane] == ordered
    ((algorithm, reason),) = ran(cs.simulate(cluster, job(star, lanes), fold=fold))
    assert algorithm in ("ring", "tree")
    assert reason.endswith("a switch would have to hold 8 trees and has slots for 1")


def test_one_group_gets_the_slot(star: ModuleType) -> None:
    cluster = cs.load_topology("dgx-a100", **FOUR)
    ((_, reason),) = ran(cs.simulate(cluster, job(star, [range(32)])))
    assert "sharp/Simple" in reason
    ((algorithm, _),) = ran(cs.simulate(cluster, job(star, [range(32)], algorithm="sharp")))
    assert algorithm == "sharp"


def test_a_pinned_algorithm_without_a_slot_is_refused(star: ModuleType) -> None:
    cluster = cs.load_topology("dgx-a100", **FOUR)
    lanes = [[gpu + 8 * node for node in range(4)] for gpu in range(8)]
    with pytest.raises(cs.BadInput, match="sharp"):
        cs.simulate(cluster, job(star, lanes, algorithm="sharp"))
