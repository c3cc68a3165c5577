"""NVLink SHARP: streams, steps and what it refuses."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from clustersim.collective.channels import NVLS_CHANNELS
from clustersim.collective.cost import group_cost
from clustersim.collective.nvls import nvls
from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape
from clustersim.collective.tree import tree
from clustersim.faults import BadInput


def nodes(*counts: int, multicast: bool = True) -> GroupShape:
    return GroupShape(node=np.repeat(np.cumsum(counts) - counts, counts), multicast=multicast)


def test_each_owner_has_one_stream_to_it_and_one_from_it() -> None:
    added, copied = nvls("all_reduce", 8000, nodes(8)).phases
    assert (added.tree == added.destination).all()  # type: ignore[union-attr]
    assert (copied.tree == copied.source).all()  # type: ignore[union-attr]
    for phase in (added, copied):
        assert len(set(zip(phase.source.tolist(), phase.destination.tolist(), strict=True))) == 8 * 7
        assert set(phase.nbytes.tolist()) == {1000}
        assert phase.num_steps == 1


def test_halves_of_an_all_reduce() -> None:
    added, copied = nvls("all_reduce", 8000, nodes(8)).phases
    (scattered,), (gathered,) = (nvls(kind, 8000, nodes(8)).phases for kind in ("reduce_scatter", "all_gather"))
    assert (scattered.source == added.source).all()
    assert (gathered.destination == copied.destination).all()


def test_on_links_a_ring_carries_two_payloads_less_a_share_and_this_one(star: ModuleType) -> None:
    """8 members at 100 GB/s, 80 MB: 2 · 7/8 · 0.8 ms against 0.8 ms."""
    cluster, devices = star.cluster(1, 8), np.arange(8)[None]
    cost = group_cost(
        cluster, devices, (ring("all_reduce", 80_000_000, nodes(8)), nvls("all_reduce", 80_000_000, nodes(8)))
    )
    assert cost.ns.tolist() == [[1_400_000, 800_000]]


def test_over_nodes_an_all_reduce_takes_trees_of_a_lanes_share() -> None:
    added, between, copied = nvls("all_reduce", 8000, nodes(*[4] * 5)).phases
    of_lane = tree("all_reduce", 2000, GroupShape(node=np.arange(5))).phases[0]
    assert (between.source[: len(of_lane.source)] == 4 * of_lane.source).all()
    assert between.nbytes.sum() == 4 * of_lane.nbytes.sum() == 4 * 2 * 4 * 2000
    assert between.num_steps == of_lane.num_steps == 2 * 3
    assert between.tree is None
    for phase in (added, copied):
        assert phase.num_steps == 1
        assert (phase.source // 4 == phase.destination // 4).all()
        assert len(set(phase.tree.tolist())) == 5 * 4  # type: ignore[union-attr]


def test_over_nodes_the_others_take_rings() -> None:
    between, copied = nvls("all_gather", 20_000, nodes(*[4] * 5)).phases
    assert set(between.nbytes.tolist()) == {4000}
    assert between.num_steps == 4
    assert set(copied.nbytes.tolist()) == {5000}


def test_it_takes_few_sms_and_overlaps_its_parts() -> None:
    for shape in (nodes(8), nodes(8, 8)):
        traffic = nvls("all_reduce", 8000, shape)
        assert traffic.pipelined
        assert traffic.num_sms == NVLS_CHANNELS


def test_what_is_added_up_is_staged_where_it_comes_from() -> None:
    """4 members, 4000 B: in and out 8000 or 5000, and 2 · 3000 sent or received through the staging buffer."""
    memory = {kind: nvls(kind, 4000, nodes(4)).memory_nbytes.tolist() for kind in ("all_reduce", "reduce_scatter")}
    assert memory == {"all_reduce": [8000 + 2 * 3000 + 2 * 3000] * 4, "reduce_scatter": [5000 + 2 * 3000] * 4}
    assert nvls("all_gather", 4000, nodes(4)).memory_nbytes.tolist() == [5000 + 2 * 3000] * 4


@pytest.mark.parametrize(
    ("shape", "rules", "nearest"),
    [
        (nodes(8, multicast=False), ["NVLink SHARP"], ["ring"]),
        (nodes(1, 1), ["more than one member on a node"], ["tree"]),
        (nodes(1, 1, multicast=False), ["NVLink SHARP", "more than one member"], ["ring", "tree"]),
        (nodes(4, 2), ["equally many members on each node, not 2 to 4"], ["ring"]),
    ],
)
def test_where_it_cannot_run(shape: GroupShape, rules: list[str], nearest: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        nvls("all_reduce", 8000, shape)
    assert [fault.nearest for fault in caught.value.faults] == nearest
    for fault, rule in zip(caught.value.faults, rules, strict=True):
        assert rule in fault.rule
        assert fault.value == "nvls"


def test_all_to_all_is_not_a_collective_of_it() -> None:
    with pytest.raises(BadInput, match="not a collective of nvls"):
        nvls("all_to_all", 8000, nodes(8, 8))
