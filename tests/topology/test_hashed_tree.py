"""Hashed ECMP: each flow keeps to one link of each bundle, over switches that the wiring joins."""

import re

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.rail_optimized import rail_optimized

TREES = [
    (80, rail_optimized, {}),
    (80, rail_optimized, {"oversubscription": 3, "pxn": False}),
    (13, fat_tree, {"levels": 2}),
    (48, fat_tree, {"radix": 16, "levels": 3}),
    (40, fat_tree, {"radix": 24, "levels": 3, "oversubscription": 2}),
    (70, rail_optimized, {"radix": 16, "levels": 4, "rails": 4}),
]


def some_pairs(topology, n=3000):
    source, destination = np.random.default_rng(1).integers(0, topology.num_devices, (2, n))
    return source[source != destination], destination[source != destination]


def bundle(name):
    return name.split("[")[0]


@pytest.mark.parametrize(("num_nodes", "family", "arguments"), TREES)
class TestAnyTree:
    def test_but_for_the_link_it_is_the_route_of_ideal_ecmp(self, make, num_nodes, family, arguments):
        ideal, hashed = (make(num_nodes, family, ecmp=ecmp, **arguments) for ecmp in ("ideal", "hashed"))
        pairs = some_pairs(ideal, 300)
        for expected, got in zip(ideal.route(*pairs), hashed.route(*pairs), strict=True):
            links = hashed.resources.names(got[got >= 0])
            assert [bundle(name) for name in links] == ideal.resources.names(expected[expected >= 0])

    def test_links_of_a_bundle_have_its_capacity_together(self, make, num_nodes, family, arguments):
        ideal, hashed = (make(num_nodes, family, ecmp=ecmp, **arguments).resources for ecmp in ("ideal", "hashed"))
        together = {}
        for name, capacity in zip(hashed.names(), hashed.capacity.tolist(), strict=True):
            together[bundle(name)] = together.get(bundle(name), 0) + capacity
        assert together == dict(zip(ideal.names(), ideal.capacity.tolist(), strict=True))

    def test_what_goes_up_to_a_switch_comes_down_from_it(self, make, num_nodes, family, arguments):
        """Along a route, the end of one link and the start of the next are one switch."""
        topology = make(num_nodes, family, ecmp="hashed", **arguments)
        tiers = dict(zip(("leaf", "pod", "zone"), topology.router.crossing.path.groups.tiers, strict=False))
        below = dict(zip(("pod", "zone"), ("leaf", "pod"), strict=True))
        for rows in topology.route(*some_pairs(topology, 300)):
            at = None
            for name in topology.resources.names(rows[rows >= 0]):
                found = re.fullmatch(r"([a-z]+)\d+/(?:up|down)\[(\d+)\]", name)
                if not found:
                    continue
                group, link = found.groups()
                above = int(link) % tiers[group].num_above
                beneath = int(link) % tiers[below[group]].num_above if group in below else None
                start, end = (beneath, above) if "/up[" in name else (above, beneath)
                assert at is None or start == at
                at = end

    def test_no_link_is_left_idle(self, make, num_nodes, family, arguments):
        topology = make(num_nodes, family, ecmp="hashed", **arguments)
        rows = topology.route(*np.nonzero(~np.eye(topology.num_devices, dtype=bool)))
        used = np.unique(rows[rows >= 0])
        is_leaf = np.char.startswith(np.array(topology.resources.names(used)), "leaf")
        ideal = make(num_nodes, family, **arguments)
        crossed = ideal.route(*np.nonzero(~np.eye(topology.num_devices, dtype=bool)))
        leaves = [r for r in np.unique(crossed[crossed >= 0]) if ideal.resources.name(r).startswith("leaf")]
        assert is_leaf.sum() == sum(ideal.resources.block(int(r)).num_links for r in leaves)


def test_flows_collide_and_the_seed_decides_which(make):
    """64 flows over 64 links: some links carry several, others none, and all as the seed says."""
    first, again, other = (make(16, fat_tree, ecmp="hashed", ecmp_seed=seed) for seed in (0, 0, 1))
    source = np.arange(32)
    flows = source, source + 32
    assert (first.route(*flows) == again.route(*flows)).all()
    assert (first.route(*flows) != other.route(*flows)).any()
    up = first.route(*flows)[:, 2]
    counts = np.bincount(up - up.min())
    assert counts.max() > 1
    assert 32 * 0.4 < len(np.unique(up)) < 32  # a fraction 1 - 1/e is drawn on average


def test_draws_are_even(make):
    topology = make(2, fat_tree, ecmp="hashed", radix=16, levels=2)
    links = np.concatenate(
        [
            make(2, fat_tree, ecmp="hashed", ecmp_seed=seed, radix=16, levels=2).route(np.arange(8), np.arange(8, 16))[
                :, 2
            ]
            for seed in range(100)
        ]
    )
    count = np.bincount(links - topology.resources.find("leaf0/up[0]"), minlength=8)
    assert ((count - 100) ** 2 / 100).sum() < 24.3  # chi-squared of 7 degrees of freedom: 99.9 %


def test_a_note_says_what_it_costs_or_that_it_does_nothing(make):
    assert "nearly every rank" in make(9, fat_tree, ecmp="hashed").notes[0]
    assert "no effect" in make(8, fat_tree, ecmp="hashed").notes[0]


class TestFailures:
    def test_flows_of_a_failed_link_are_drawn_again_and_no_others_move(self, make):
        topology = make(16, fat_tree, ecmp="hashed")
        pairs = some_pairs(topology)
        before = topology.route(*pairs)
        lost = ["leaf0/up[3]", "leaf1/down[0]", "leaf1/down[1]"]
        rows = [topology.resources.find(name) for name in lost]
        after = topology.without_links(lost).route(*pairs)
        hit = np.isin(before, rows).any(axis=1)
        assert hit.any()
        assert not np.isin(after, rows).any()
        assert (after[~hit] == before[~hit]).all()
        assert len(np.unique(after[hit][:, 2])) > 5  # over many others, not one

    def test_the_last_link_of_a_bundle_is_refused(self, make):
        topology = make(16, fat_tree, ecmp="hashed", radix=16, levels=3)
        names = [f"leaf2/up[{i}]" for i in range(8)]
        left = topology.without_links(names[:-1])
        rows = left.route(np.full(8, 16), np.arange(24, 32))
        assert set(left.resources.names(rows[:, 2])) == {"leaf2/up[7]"}
        with pytest.raises(BadInput, match="leaves no route: all 8") as error:
            topology.without_links(names)
        assert error.value.faults[0].value == "leaf2/up"

    def test_links_that_meet_nowhere_are_said_when_a_flow_needs_them(self, make):
        topology = make(16, fat_tree, ecmp="hashed", radix=16, levels=3)
        lost = [f"leaf0/up[{i}]" for i in range(1, 8)] + ["leaf1/down[0]"]
        broken = topology.without_links(lost)
        broken.route(np.array([0]), np.array([16]))
        with pytest.raises(BadInput, match="leave no way between two ports"):
            broken.route(np.array([0]), np.array([8]))

    def test_a_failed_spine_takes_its_links_at_every_leaf(self, make):
        topology = make(48, fat_tree, ecmp="hashed", radix=16, levels=3)
        left = topology.without_links(["pod0", "core0"])
        rows = left.route(*some_pairs(topology))
        names = {name for name in left.resources.names(np.unique(rows[rows >= 0])) if "[" in name}
        tiers = topology.router.crossing.path.groups.tiers
        leaves, pods = tiers[0].num_above, tiers[1].num_above
        inside = [int(n.split("[")[1][:-1]) for n in names if n.startswith("leaf") and int(n[4:].split("/")[0]) < 8]
        assert all(link % leaves for link in inside)
        assert all(int(n.split("[")[1][:-1]) % pods for n in names if n.startswith("pod"))
        other = [int(n.split("[")[1][:-1]) for n in names if n.startswith("leaf9/")]
        assert any(link % leaves == 0 for link in other)
