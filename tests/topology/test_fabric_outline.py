"""What is between nodes: levels, counts and parents, held against routes."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.library.topologies import load_topology
from clustersim.topology.fabric_outline import fabric_outline
from clustersim.topology.topology import Topology


def first_links(topology: Topology, nodes: tuple[int, ...], kind: str) -> dict[int, set[str]]:
    """Names of the links of one kind that traffic of each node's GPUs to a far node crosses first."""
    far = topology.num_devices // 2
    found = {}
    for node in nodes:
        devices = np.flatnonzero(topology.node_of == node)
        other = (devices + far) % topology.num_devices
        names = [topology.resources.names(route[route >= 0]) for route in topology.route(devices, other)]
        kinds = {name for route in names for name in route[: len(route) // 2] if kind in name}
        found[node] = kinds
    return found


def levels(topology: Topology) -> dict[str, int]:
    fabric = fabric_outline(topology)
    assert fabric is not None
    return {level.name: level.count for level in fabric.levels}


def test_a_tree_has_as_many_groups_as_its_resources_name() -> None:
    topology = load_topology("dgx-h100", nodes=2048)
    counts = {block.label: block.count for block in topology.resources.blocks}
    assert levels(topology) == {"node": 2048, "leaf": counts["leaf{}/up"], "pod": counts["pod{}/up"], "core": 1}


def test_parents_are_the_switches_that_routes_cross() -> None:
    topology = load_topology("dgx-h100", nodes=128)
    fabric = fabric_outline(topology)
    assert fabric is not None
    node = fabric.levels[0]
    assert node.drawn == (0, 1, 2, 127)
    crossed = first_links(topology, node.drawn, "leaf")
    for number, parents in zip(node.drawn, node.parents, strict=True):
        assert {f"leaf{leaf}/up" for leaf in parents} == crossed[number]


def test_parents_in_a_site_and_in_a_dragonfly() -> None:
    sites = load_topology("two-sites-h100", nodes=256)
    fabric = fabric_outline(sites)
    assert fabric is not None
    assert [(level.name, level.count) for level in fabric.levels] == [("node", 256), ("leaf", 64), ("site", 2)]
    crossed = first_links(sites, fabric.levels[0].drawn, "leaf")
    for number, parents in zip(fabric.levels[0].drawn, fabric.levels[0].parents, strict=True):
        assert {f"site{leaf // 32}/leaf{leaf % 32}/up" for leaf in parents} == crossed[number]
    assert fabric.levels[1].parents == ((0,), (0,), (0,), (1,))
    dragonfly = fabric_outline(load_topology("frontier", nodes=512))
    assert dragonfly is not None
    assert [(level.name, level.count) for level in dragonfly.levels] == [("node", 512), ("router", 128), ("group", 4)]
    assert dragonfly.levels[0].parents == ((0, 1, 2, 3),) * 3 + ((124, 125, 126, 127),)
    assert dragonfly.levels[2].peers is not None


@pytest.mark.parametrize(
    ("settings", "title", "names"),
    [
        ({"fabric": "fat_tree", "fabric.ecmp": "hashed"}, "fat tree", ["node", "leaf", "core"]),
        ({"fabric": "dragonfly_plus"}, "dragonfly+", ["node", "leaf", "group"]),
    ],
)
def test_other_switched_fabrics(settings: dict[str, str], title: str, names: list[str]) -> None:
    fabric = fabric_outline(load_topology("dgx-h100", nodes=64, **settings))
    assert fabric is not None
    assert fabric.title.startswith(title)
    assert [level.name for level in fabric.levels] == names


def test_a_bundle_is_the_same_whether_flows_are_hashed_or_not() -> None:
    ideal, hashed = (
        fabric_outline(load_topology("dgx-h100", nodes=64, **{"fabric.ecmp": ecmp})) for ecmp in ("ideal", "hashed")
    )
    assert ideal is not None
    assert hashed is not None
    assert [level.up for level in ideal.levels] == [level.up for level in hashed.levels]


def test_grids_and_direct_links() -> None:
    torus = fabric_outline(load_topology("torus-h100", nodes=16))
    assert torus is not None
    assert (torus.dims, torus.wrap, len(torus.axes)) == ((4, 2, 2), True, 3)
    assert torus.axes[1].capacity == 2 * torus.axes[0].capacity  # a ring of two is both links


def test_over_subscription_and_mixed_ports_are_told() -> None:
    tree = fabric_outline(load_topology("dgx-h100", nodes=128, **{"fabric.oversubscription": 2}))
    assert tree is not None
    assert any("over-subscribed 2 to 1" in remark for remark in tree.remarks)
    mixed = fabric_outline(load_topology("mixed-a100-h100"))
    assert mixed is not None
    assert any("24 GB/s on nodes 0 to 1, 48 GB/s on nodes 2 to 3" in remark for remark in mixed.remarks)
