"""Explanations: what is in one, its page, and that bad input is refused by name or has its trivial answer."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import networkx as nx
import numpy as np
import pytest

import clustersim as cs
from clustersim.collective.bound import KINDS, bus_factor
from clustersim.collective.explanation import Explanation
from clustersim.collective.explanations import explain, explain_sizes, largest_payload
from clustersim.collective.price import price
from clustersim.faults import BadInput
from clustersim.topology.resources import ResourceTable
from clustersim.topology.topology import Topology

TWO = cs.load_topology("dgx-a100", nodes=2)
CARDS = ("dgx-a100", "dgx-h100", "hgx-mi300x", "dgx1-v100", "gb200-nvl72", "two-sites-h100", "torus-h100")


def faults(*given: Any, **more: Any) -> list[tuple[str, Any, Any]]:
    with pytest.raises(BadInput) as caught:
        explain(*given, **more)
    return [(fault.key, fault.value, fault.nearest) for fault in caught.value.faults]


def pair(star: ModuleType, **edge: Any) -> Topology:
    """Two GPUs on one link."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from("ab", role="gpu")
    graph.add_edge("a", "b", **edge)
    return Topology.from_networkx(graph, gpu=star.CARD, cpu=star.HOST)


def test_the_name_is_public_twice() -> None:
    assert cs.explain is cs.collective.explain is explain
    import clustersim.collective.explanations  # noqa: F401 - a submodule must not take the name's place

    assert cs.collective.explain is explain


def test_it_is_the_price_with_what_follows_from_it() -> None:
    why = explain("all_reduce", 1 << 30, TWO)
    (one,) = price(TWO, range(16), "all_reduce", [1 << 30])
    assert (why.seconds, why.latency_seconds) == (one.ns / 1e9, one.latency_ns / 1e9)
    assert (why.algorithm, why.protocol, why.reason) == (one.traffic.algorithm, one.protocol, one.reason)
    assert (why.num_ranks, why.num_nodes, why.topology) == (16, 2, "dgx-a100")
    assert why.num_steps == sum(phase.num_steps for phase in one.traffic.phases) > 0
    assert why.num_channels == one.traffic.num_sms > 0
    assert why.algbw == pytest.approx((1 << 30) / why.seconds)
    assert why.busbw == pytest.approx(why.algbw * bus_factor("all_reduce", 16))
    assert 0 < why.achieved == why.lower_bound / why.seconds <= 1


def test_bytes_per_link_in_closed_form(star: ModuleType) -> None:
    """A ring of 4 ranks on two nodes: each sends 2·3/4·S; half of the edges leave the node."""
    why = explain("all_reduce", 4 * 10**8, star.cluster(2, 2), algorithm="ring")
    links = why.bytes_per_link
    assert {links[f"nic{i}.tx"] for i in range(4)} == {3 * 10**8}
    assert links["hbm0"] > 0
    assert not any(name.startswith("pcie") for name in links)
    assert why.busiest is not None
    assert (why.busiest.name, why.busiest.nbytes) == ("nic0.tx", 3 * 10**8)
    assert why.busiest.share == pytest.approx(3e8 / 1e10 / why.seconds) == pytest.approx(1.0)
    assert [load.share for load in why.links] == sorted((load.share for load in why.links), reverse=True)
    assert sum(load.nbytes for load in why.links) == sum(links.values())


def test_without_latency_a_ring_is_as_fast_as_anything_can_be(star: ModuleType) -> None:
    for kind in ("all_reduce", "all_gather", "reduce_scatter"):
        why = explain(kind, 8 * 10**9, star.cluster(1, 8), algorithm="ring")
        assert why.achieved == pytest.approx(1.0, rel=1e-6)


def test_several_sizes_are_the_same_as_one_by_one() -> None:
    sizes = [0, 1, 1 << 20, 1 << 33]
    assert [str(why) for why in explain_sizes("all_reduce", sizes, TWO)] == [
        str(explain("all_reduce", nbytes, TWO)) for nbytes in sizes
    ]
    assert explain_sizes("all_reduce", [], TWO) == []


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("kind", ["all_reduce", "all_to_all", "broadcast"])
def test_the_page_has_80_columns_and_the_answer(card: str, kind: str) -> None:
    topology = cs.load_topology(card)
    for nbytes in (0, 1, 1 << 33):
        why = explain(kind, nbytes, topology)
        page = str(why)
        assert max(map(len, page.splitlines())) <= 80
        assert why.algorithm in page
        assert not nbytes or f"{why.achieved:.1%}" in page


def test_pins(star: ModuleType) -> None:
    assert explain("all_reduce", 1 << 20, TWO, algorithm="ring/LL128").protocol == "LL128"
    assert explain("all_reduce", 1 << 20, TWO, algorithm="tree", protocol="LL").algorithm == "tree"
    assert explain("all_reduce", 1 << 20, star.cluster(1, 2)).protocol == ""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("send_recv", "barrier")])
def test_a_group_of_one_takes_its_launch_and_no_link(kind: str) -> None:
    for nbytes in (0, 1 << 30):
        why = explain(kind, nbytes, TWO, [3])
        assert why.seconds == TWO.gpus[0].launch_latency
        assert (len(why.rows), why.busiest, why.links, why.bytes_per_link) == (0, None, (), {})
        assert (why.busbw, why.lower_bound, why.bounded_by, why.achieved) == (0, 0, "", 0)
        assert "1 rank on 1 node" in str(why)


def test_no_time_is_zero_where_something_moves(star: ModuleType) -> None:
    quick = star.cluster(1, 2, nvlink=1e18)
    for kind in KINDS:
        if kind != "barrier":
            assert explain(kind, 1, quick).seconds > 0


def test_every_fault_of_the_call_at_once() -> None:
    assert faults("allreduce", -1, TWO, [0, 16, 16, -1, 0, 1.5], algorithm="rng", protocol="LL64") == [
        ("kind", "allreduce", "all_reduce"),
        ("algorithm", "rng", "ring"),
        ("protocol", "LL64", "LL"),
        ("devices", 16, 15),
        ("devices", 16, 15),
        ("devices", -1, 0),
        ("devices", 0, None),
        ("devices", 1.5, 0),
        ("nbytes", -1, 0),
    ]


def test_an_empty_group() -> None:
    assert faults("all_reduce", 8, TWO, []) == [("devices", [], [0])]


def test_a_rank_twice() -> None:
    assert faults("all_reduce", 8, TWO, [0, 1, 1]) == [("devices", 1, None)]
    assert faults("all_reduce", 8, TWO, np.array([2, 2])) == [("devices", 2, None)]


@pytest.mark.parametrize("nbytes", [-1, 1.0, float("nan"), float("inf"), True, "1M", None])
def test_payloads_that_are_none(nbytes: Any) -> None:
    ((key, value, _),) = faults("all_reduce", nbytes, TWO)
    assert key == "nbytes"
    assert value is nbytes or value == nbytes


def test_payloads_beyond_what_can_be_counted() -> None:
    for nbytes in (1 << 63, 1 << 64, 10**30):  # 8 EiB and more
        assert faults("all_reduce", nbytes, TWO) == [("nbytes", nbytes, largest_payload(16))]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("send_recv", "barrier")])
def test_the_largest_payload_is_counted_right(kind: str) -> None:
    most = largest_payload(16)
    less, more = explain_sizes(kind, [most // 1024, most], TWO)
    assert more.seconds / less.seconds == pytest.approx(1024, rel=1e-2)
    assert (more.loads > 0).all()


def test_a_link_so_slow_that_time_cannot_be_counted(star: ModuleType) -> None:
    slow = pair(star, bandwidth=1, latency=0)
    ((key, value, nearest),) = faults("all_reduce", 1 << 40, slow)
    assert (key, value) == ("nbytes", 1 << 40)
    assert explain("all_reduce", nearest, slow).seconds == pytest.approx(1e9)


@pytest.mark.parametrize(
    ("edge", "key"),
    [
        ({"bandwidth": 0, "latency": 0}, "a->b.bandwidth"),
        ({"bandwidth": float("nan"), "latency": 0}, "a->b.bandwidth"),
        ({"bandwidth": float("inf"), "latency": 0}, "a->b.bandwidth"),
        ({"bandwidth": 1e9, "latency": -1e-6}, "a->b.latency"),
        ({"bandwidth": 1e9, "latency": float("nan")}, "a->b.latency"),
    ],
)
def test_links_that_are_none_are_refused_where_they_are_made(star: ModuleType, edge: dict[str, Any], key: str) -> None:
    with pytest.raises(BadInput) as caught:
        pair(star, **edge)
    assert key in [fault.key for fault in caught.value.faults]


def made_with(topology: Topology, **changes: Any) -> Topology:
    """``topology`` with its first link changed behind the back of every check."""
    first, *rest = topology.resources.blocks
    return replace(topology, resources=ResourceTable([replace(first, **changes), *rest]))


def test_links_that_carry_nothing_or_go_back_in_time_are_refused_by_name(star: ModuleType) -> None:
    broken = made_with(star.cluster(1, 2), capacity=0.0)
    assert faults("all_reduce", 8, broken) == [("nvlink0.up", 0, 1), ("nvlink1.up", 0, 1)]
    broken = made_with(star.cluster(1, 2), latency=-1e-6)
    assert faults("all_reduce", 8, broken) == [("nvlink0.up", -1000, 0), ("nvlink1.up", -1000, 0)]
    with pytest.raises(ValueError, match="nan"):
        made_with(star.cluster(1, 2), capacity=float("nan"))


def test_members_that_cannot_reach_each_other_are_named(star: ModuleType) -> None:
    topology = star.cluster(1, 3)
    unreachable = replace(topology, router=lambda source, _: np.full((len(source), 1), -1))
    assert [key for key, *_ in faults("all_reduce", 8, unreachable)] == [
        f"route {a} -> {b}" for a, b in ((0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1))
    ]
    assert explain("all_reduce", 8, unreachable, [1]).num_ranks == 1


def test_a_send_needs_two() -> None:
    with pytest.raises(BadInput, match="2 members"):
        explain("send_recv", 8, TWO)
    assert isinstance(explain("send_recv", 8, TWO, [0, 8]), Explanation)


def test_a_barrier_carries_nothing() -> None:
    assert faults("barrier", 8, TWO) == [("nbytes", 8, 0)]
    why = explain("barrier", 0, TWO)
    assert why.seconds > 0 == why.lower_bound


def test_large_groups_answer(star: ModuleType) -> None:
    why = explain("all_reduce", 1 << 30, star.cluster(300, 4))
    assert why.num_ranks == 1200
    assert 0 < why.achieved <= 1
