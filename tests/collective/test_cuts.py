"""What must cross a cut, in closed form on small clusters; and nothing that is modelled beats it."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.collective.bound import KINDS, bus_factor
from clustersim.collective.cuts import Cuts
from clustersim.collective.price import price
from clustersim.collective.select import ALGORITHMS
from clustersim.faults import BadInput
from clustersim.topology.topology import Topology

NONE = np.empty(0, dtype=np.int64)


def cuts(topology: Topology, num: int | None = None, *, reducing: bool = False) -> Cuts:
    devices = np.arange(topology.num_devices if num is None else num)
    rows = np.arange(len(topology.resources))
    return Cuts.of(topology, devices, rows, reducing=reducing)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("barrier", "send_recv")])
def test_on_one_switch_it_is_the_bound_of_the_members(star: ModuleType, kind: str) -> None:
    """8 ranks at 100 GB/s: bus_factor · S/B for all but reductions that no switch does."""
    found = cuts(star.cluster(1, 8)).bound(kind, 8 * 10**11)
    assert found.seconds == pytest.approx(8 * bus_factor(kind, 8))
    assert "rank" in found.by


def test_switches_that_reduce_only_leave_what_a_member_must_send_and_receive(star: ModuleType) -> None:
    assert cuts(star.cluster(1, 8), reducing=True).bound("all_reduce", 10**11).seconds == pytest.approx(1.0)
    assert cuts(star.cluster(1, 8), reducing=False).bound("all_reduce", 10**11).seconds == pytest.approx(14 / 8)


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [
        ("all_reduce", 2 * 3 / 4),  # 4 nodes of 2 x 10 GB/s
        ("all_gather", 3 / 4),
        ("reduce_scatter", 3 / 4),
        ("all_to_all", 2 * 6 / 8),
        ("broadcast", 1.0),
        ("gather", 3 / 4),
    ],
)
def test_over_the_network_it_is_what_leaves_a_node(star: ModuleType, kind: str, seconds: float) -> None:
    found = cuts(star.cluster(4, 2)).bound(kind, 20 * 10**9)
    assert found.seconds == pytest.approx(seconds)
    assert "node" in found.by


def test_an_uplink_that_all_must_share_is_found(star: ModuleType) -> None:
    """Two leaves of two nodes of two ranks, the uplinks at a quarter: 10 GB/s for 4 ranks."""
    topology = star.cluster(4, 2, leaf=2, over=4)
    found = cuts(topology).bound("all_to_all", 8 * 10**9)
    assert found.seconds == pytest.approx(4 * 4 / 8 * 8 / 10)
    assert found.by == "what must get out of 4 ranks, over 1 leaf_up"
    assert cuts(topology).bound("all_reduce", 10**10).seconds == pytest.approx(1.0)


def test_a_slow_link_of_one_member_sets_the_bound(star: ModuleType) -> None:
    topology = star.cluster(3, 1).with_capacity({"nic1.tx": 0.1})
    found = cuts(topology).bound("all_gather", 3 * 10**9)
    assert found.seconds == pytest.approx(1.0)
    assert found.by == "what must get out of rank 1, over 1 nic"


def test_direct_links_are_counted_together() -> None:
    topology = cs.load_topology("hgx-mi300x", nodes=1)
    link = min(b.capacity for b in topology.resources.blocks if b.kind == "xgmi")
    found = cuts(topology).bound("all_gather", 8 * 10**9)
    assert found.seconds == pytest.approx(7 * 10**9 / (7 * link))
    assert found.by.endswith("over 7 xgmi")


def test_nothing_must_cross_without_a_payload_or_another_member(star: ModuleType) -> None:
    topology = star.cluster(2, 2)
    for kind in KINDS:
        assert cuts(topology).bound(kind, 0).seconds == 0
        assert cuts(topology, 1).bound(kind, 10**9).seconds == 0
    assert cuts(topology).bound("barrier", 10**9).seconds == 0


def test_large_groups_are_bounded_by_some_of_their_cuts(star: ModuleType) -> None:
    topology = star.cluster(300, 2)
    found = cuts(topology)
    assert found.partitions == ()
    assert 10 < len(found.cuts) < 100
    assert found.bound("all_gather", 20 * 10**9).seconds == pytest.approx(299 / 300)


CLUSTERS = {
    name: cs.load_topology(name, **size)
    for name, size in {
        "dgx-h100": {"nodes": 3},
        "dgx-a100": {"nodes": 2},
        "hgx-mi300x": {"nodes": 2},
        "dgx1-v100": {"nodes": 2},
        "frontier": {"nodes": 2},
        "two-sites-h100": {},
    }.items()
}
CLUSTERS["sharp"] = cs.load_topology("dgx-h100", nodes=3, **{"fabric.sharp": True})


@pytest.mark.parametrize("name", list(CLUSTERS))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_algorithm_beats_the_bound_on_any_group(name: str, data: st.DataObject) -> None:
    topology = CLUSTERS[name]
    devices = data.draw(st.lists(st.integers(0, topology.num_devices - 1), min_size=2, max_size=12, unique=True))
    kind = data.draw(st.sampled_from([kind for kind in KINDS if kind not in ("barrier", "send_recv")]))
    nbytes = data.draw(st.sampled_from([1, 1000, 2**20 + 1, 2**33]))
    algorithm = data.draw(st.sampled_from([None, *ALGORITHMS]))
    try:
        (one,) = price(topology, devices, kind, [nbytes], algorithm=algorithm)
    except BadInput:
        return  # an algorithm that does not have the kind, or needs other switches
    reducing = one.shape.multicast or one.shape.in_network
    found = Cuts.of(topology, np.array(devices), one.rows, reducing=reducing).bound(kind, nbytes)
    assert 0 < found.seconds <= one.ns / 1e9
