"""Reduction in the network: streams, the links they share, and what is refused."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from clustersim.collective.channels import NVLS_CHANNELS
from clustersim.collective.cost import group_cost
from clustersim.collective.ring import ring
from clustersim.collective.sharp import MAX_NODES, sharp
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput


def nodes(*counts: int, multicast: bool = True, in_network: bool = True) -> GroupShape:
    node = np.repeat(np.cumsum(counts) - counts, counts)
    return GroupShape(node=node, multicast=multicast, in_network=in_network)


def test_each_lane_has_one_stream_up_and_one_down() -> None:
    _, between, _ = sharp("all_reduce", 4000, nodes(2, 2, 2)).phases
    streams = dict.fromkeys(between.tree.tolist(), ())  # type: ignore[union-attr]
    for stream, a, b in zip(between.tree, between.source, between.destination, strict=True):  # type: ignore[arg-type]
        streams[int(stream)] += ((int(a), int(b)),)
    assert streams == {
        0: ((2, 0), (4, 0)),
        1: ((0, 2), (0, 4)),
        2: ((3, 1), (5, 1)),
        3: ((1, 3), (1, 5)),
    }
    assert set(between.nbytes.tolist()) == {2000}
    assert between.num_steps == 1


def test_a_nic_carries_one_share_where_a_rings_carries_almost_two(star: ModuleType) -> None:
    """4 nodes of 2, NICs of 10 GB/s, 80 MB: 40 MB a lane in 4 ms; the ring 2 · 7/8 · 40 MB in 7 ms."""
    devices, shape = np.arange(8)[None], nodes(2, 2, 2, 2)
    cost = group_cost(
        star.cluster(4, 2, leaf=4), devices, tuple(of("all_reduce", 80_000_000, shape) for of in (ring, sharp))
    )
    assert cost.ns.tolist() == [[7_000_000, 4_000_000]]


def test_a_shared_uplink_carries_a_stream_once(star: ModuleType) -> None:
    """Two leaves of two nodes: both nodes of the far leaf are added up below their uplink."""
    cluster = star.cluster(4, 1, leaf=2)
    cost = group_cost(cluster, np.arange(4)[None], (sharp("all_reduce", 1_000_000, nodes(1, 1, 1, 1)),))
    load = dict(zip(cluster.resources.names(cost.row), cost.load[:, 0].tolist(), strict=True))
    links = {name: nbytes for name, nbytes in load.items() if "leaf" in name or "nic" in name}
    assert set(links.values()) == {1_000_000}
    assert len(links) == 4 * 2 + 2 * 2


def test_scatter_and_gather_are_a_stream_a_member() -> None:
    inside, between = sharp("reduce_scatter", 6000, nodes(2, 2, 2)).phases
    assert (inside.nbytes == 3000).all()
    assert (between.nbytes == 1000).all()
    assert len(set(between.tree.tolist())) == 6  # type: ignore[union-attr]
    assert (between.source % 2 == between.destination % 2).all()
    first, second = sharp("all_gather", 6000, nodes(2, 2, 2)).phases
    assert (first.source == between.destination).all()
    assert (second.nbytes == 3000).all()


def test_without_multicast_pairs_exchange_inside() -> None:
    plain = sharp("all_reduce", 8000, nodes(4, 4, multicast=False))
    assert [phase.tree is None for phase in plain.phases] == [True, False, True]
    able = sharp("all_reduce", 8000, nodes(4, 4))
    assert not any(phase.tree is None for phase in able.phases)
    assert (plain.num_sms, able.num_sms) == (8, NVLS_CHANNELS)


@pytest.mark.parametrize(
    ("shape", "rule", "nearest"),
    [
        (nodes(4, 4, in_network=False), "between the nodes that add up", "ring"),
        (nodes(8), "more than one node", "nvls"),
        (nodes(8, multicast=False), "more than one node", "ring"),
        (nodes(4, 2), "equally many members", "ring"),
    ],
)
def test_where_it_cannot_run(shape: GroupShape, rule: str, nearest: str) -> None:
    with pytest.raises(BadInput, match=rule) as caught:
        sharp("all_reduce", 8000, shape)
    (fault,) = caught.value.faults
    assert (fault.value, fault.nearest) == ("sharp", nearest)


def test_too_many_streams_are_refused_but_not_for_an_all_reduce() -> None:
    many = nodes(*[1] * (MAX_NODES + 1))
    with pytest.raises(BadInput, match=f"at most {MAX_NODES}"):
        sharp("all_gather", 8000, many)
    assert len(sharp("all_reduce", 8000, many).phases[0].source) == 2 * MAX_NODES
