"""The stepwise run against times that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from clustersim.collective.steps.direct import direct
from clustersim.collective.steps.hierarchical import hierarchical
from clustersim.collective.steps.ring import ring
from clustersim.collective.steps.schedule import Schedule
from clustersim.collective.traffic import GroupShape
from clustersim.engine.stepwise import MAX_MEMBERS, MAX_TRANSFERS, StepwiseCollective, stepwise
from clustersim.faults import BadInput

L = 1e-6
NVLINK, NIC = 1e11, 1e10


def on(schedule: Schedule, *devices: int, **fields: float) -> StepwiseCollective:
    return StepwiseCollective(schedule=schedule, devices=np.array(devices), **fields)


def node(n: int) -> GroupShape:
    return GroupShape(node=np.zeros(n, dtype=np.int64))


def test_one_message(star: ModuleType) -> None:
    message = ring("broadcast", 10**6, node(2))
    (end,) = stepwise(star.cluster(1, 2, latency=L), [on(message, 0, 1, start=3e-6, overhead=5e-6)])
    assert end == pytest.approx(3e-6 + 5e-6 + 1e6 / NVLINK + 2 * L, rel=1e-9)
    slow = replace(star.CARD, launch_latency=7e-6)
    (end,) = stepwise(star.cluster(1, 2, gpus=(star.CARD, slow), gpu_of=[0, 1]), [on(message, 0, 1)])
    assert end == pytest.approx(7e-6 + 1e6 / NVLINK, rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_a_ring_takes_a_block_and_a_latency_a_step(star: ModuleType, n: int) -> None:
    (end,) = stepwise(star.cluster(1, n, latency=L), [on(ring("all_reduce", n * 10**6, node(n)), *range(n))])
    assert end == pytest.approx(2 * (n - 1) * (1e6 / NVLINK + 2 * L), rel=1e-9)


@pytest.mark.parametrize("num_slices", [1, 4, 32])
def test_a_chain_fills_and_drains(star: ModuleType, num_slices: int) -> None:
    """Latencies of slices in flight overlap; overheads do not (Thakur, Rabenseifner and Gropp, 2005)."""
    n, nbytes, overhead = 5, 32 * 10**6, 4e-6
    chain = ring("broadcast", nbytes, node(n), num_slices)
    (end,) = stepwise(star.cluster(1, n, latency=L), [on(chain, *range(n), overhead=overhead)])
    beats = num_slices + n - 2
    assert end == pytest.approx(beats * (overhead + nbytes / NVLINK / num_slices) + (n - 1) * 2 * L, rel=1e-9)


def test_shares_are_max_min(star: ModuleType) -> None:
    """0 and 1 send to 2, 0 also to 3: the way into 2 and the way out of 0 are shared by two, of one size."""
    cluster = star.cluster(1, 4)
    message = ring("broadcast", 10**6, node(2))
    ends = stepwise(cluster, [on(message, 0, 2), on(message, 1, 2), on(message, 0, 3)])
    assert ends == pytest.approx([2e6 / NVLINK] * 3, rel=1e-9)
    longer = ring("broadcast", 2 * 10**6, node(2))
    ends = stepwise(cluster, [on(message, 0, 2), on(longer, 1, 2), on(longer, 0, 3)])
    assert ends == pytest.approx([2e6 / NVLINK, 3e6 / NVLINK, 3e6 / NVLINK], rel=1e-9)
    three = [on(message, 0, 3), on(message, 1, 3), on(message, 2, 3), on(longer, 0, 1)]  # 1/3 each; 2/3 for the rest
    ends = stepwise(cluster, three)
    assert ends == pytest.approx([3e6 / NVLINK] * 4, rel=1e-9)


def test_parts_of_a_hierarchical_one_wait_for_each_other(star: ModuleType) -> None:
    shape = GroupShape(node=np.array([0, 0, 2, 2]))
    everyone = on(hierarchical("all_reduce", 4 * 10**6, shape), 0, 1, 2, 3)
    late = on(ring("broadcast", 2 * 10**6, node(2)), 0, 1)  # holds up the first part of node 0
    alone, held_up = (stepwise(star.cluster(2, 2), ones)[0] for ones in ([everyone], [everyone, late]))
    assert alone == pytest.approx(2 * 2e6 / NVLINK + 2 * 1e6 / NIC, rel=1e-9)
    assert held_up == pytest.approx(alone + 2e6 / NVLINK, rel=1e-9)


def test_the_order_of_collectives_does_not_matter(star: ModuleType) -> None:
    everyone = [
        on(ring("all_reduce", 12345, node(4)), 0, 2, 4, 6),
        on(direct("all_to_all", 54321, node(4)), 6, 1, 2, 3),
        on(ring("all_gather", 999, node(3), 2), 0, 1, 2, start=1e-7),
    ]
    cluster = star.cluster(1, 8, latency=L)
    there, back = stepwise(cluster, everyone), stepwise(cluster, everyone[::-1])
    assert there == pytest.approx(back[::-1], rel=1e-9)


def test_nothing_to_move_takes_the_latencies(star: ModuleType) -> None:
    (empty, single) = stepwise(
        star.cluster(1, 4, latency=L),
        [on(ring("all_gather", 0, node(4)), *range(4)), on(ring("all_reduce", 100, node(1)), 0, start=1.0)],
    )
    assert empty == pytest.approx(3 * 2 * L)
    assert single == 1.0
    assert len(stepwise(star.cluster(1, 2), [])) == 0


def test_what_is_too_large_or_does_not_fit_is_refused_at_once(star: ModuleType) -> None:
    many = MAX_MEMBERS + 1
    wrong = [
        on(direct("gather", 100, node(many)), *range(many)),
        on(ring("all_reduce", 100, node(2)), 0, 1, 2, start=-1.0),
        on(ring("all_reduce", 100, node(2)), 0, 0, overhead=float("inf")),
    ]
    with pytest.raises(BadInput) as refusal:
        stepwise(star.cluster(1, many), wrong)
    keys = [fault.key.split(".")[-1] for fault in refusal.value.faults]
    assert keys == ["devices", "devices", "start", "devices", "overhead"]
    chain = on(ring("broadcast", 100, node(2), MAX_TRANSFERS // 2 + 1), 0, 1)
    with pytest.raises(BadInput, match="transfers are too many"):
        stepwise(star.cluster(1, 2), [chain, chain])
