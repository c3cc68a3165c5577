"""Ranks: the axes of both meshes, and who holds the same weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import find_recipe
from clustersim.workload.ranks import Ranks


def ranks_of(*, copies: int = 1, has_experts: bool = False, **plan: Any) -> Ranks:
    built = ParallelPlan(**plan)
    return Ranks.of(built, dp=built.dp or 1, copies=copies, recipe=find_recipe("bf16"), has_experts=has_experts)


@pytest.mark.parametrize("order", [("tp", "cp", "dp", "pp"), ("tp", "pp", "cp", "dp")])
@pytest.mark.parametrize(("plan", "inner"), [({}, 1), ({"fsdp": True, "hsdp": 2}, 2)])
def test_a_replica_is_the_ranks_that_share_a_model(order: Any, plan: dict[str, Any], inner: int) -> None:
    ranks = ranks_of(tp=2, pp=2, dp=4, axis_order=order, **plan)
    assert ranks.mesh.num_ranks == 16
    assert ranks.mesh.size("dp_inner") == inner
    replica = ranks.replica()
    assert np.bincount(replica).tolist() == [4] * 4
    for group in ranks.mesh.groups("dp_inner", "dp_outer"):
        assert sorted(replica[group]) == [0, 1, 2, 3]
    for group in ranks.mesh.groups("tp", "pp"):
        assert len(set(replica[group])) == 1


def test_experts_are_held_by_the_ranks_that_ep_leaves() -> None:
    dense, own = ranks_of(tp=2, dp=8, ep=4, has_experts=True).kinds
    assert (dense.axis, dense.ranks) == ("dp", 8)
    assert (own.axis, own.ranks) == ("edp", 4)


def test_copies_of_the_stages_and_parts_of_a_sequence_hold_the_same() -> None:
    (dense,) = ranks_of(pp=2, dp=3, cp=2, copies=2).kinds
    assert dense.ranks == 12


def test_workers_step_by_themselves() -> None:
    assert ranks_of(dp=4).num_steps == 1
    assert ranks_of(dp=4, sync_every=5, sync_ranks=2).num_steps == 5
