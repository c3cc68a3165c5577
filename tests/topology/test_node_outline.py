"""What is inside a node, read off routes and names."""

from __future__ import annotations

import pytest

from clustersim.library.card import list_cards
from clustersim.library.topologies import load_topology
from clustersim.topology.node_outline import Tie, node_outlines


def test_a_switched_node() -> None:
    (node,) = node_outlines(load_topology("dgx-a100", nodes=4))
    assert (node.first, node.count, node.gpus) == (0, 4, ("a100-sxm-80gb",) * 8)
    assert node.switched == Tie(kind="nvlink", capacity=pytest.approx(279e9), num_links=12)
    assert node.direct == ()
    assert node.pcie_switch_of == (0, 0, 1, 1, 2, 2, 3, 3)
    assert node.socket_of == (0, 0, 0, 0, 1, 1, 1, 1)
    assert node.port_beside == tuple(range(8))
    assert node.drive is not None


def test_a_cube_mesh_has_the_links_of_its_paper() -> None:
    (node,) = node_outlines(load_topology("dgx1-v100"))
    assert node.switched is None
    links = {(link.a, link.b): link.tie.num_links for link in node.direct}
    assert len(links) == 16
    for gpu in range(8):
        assert sum(count for pair, count in links.items() if gpu in pair) == 6  # links of a V100
    assert node.port_beside == (0, 2, 4, 6)


def test_pairs_and_cards_without_links() -> None:
    (pairs,) = node_outlines(load_topology("a100-pcie-pairs"))
    assert [(link.a, link.b) for link in pairs.direct] == [(0, 1), (2, 3)]
    (cards,) = node_outlines(load_topology("workstation-4090"))
    assert (cards.switched, cards.direct) == (None, ())
    assert cards.host is not None
    assert cards.host.kind == "pcie"


def test_a_mixed_cluster_has_each_kind_with_its_own_ports() -> None:
    first, second = node_outlines(load_topology("mixed-a100-h100"))
    assert (first.first, first.count, second.first, second.count) == (0, 2, 2, 2)
    assert (set(first.gpus), set(second.gpus)) == ({"a100-sxm-80gb"}, {"h100-sxm"})
    assert first.port is not None
    assert second.port is not None
    assert second.port.capacity == 2 * first.port.capacity
    assert first.port_beside == second.port_beside == tuple(range(8))
    assert second.pcie_switch_of == ()


@pytest.mark.parametrize("name", [name for name, _ in list_cards()["topology"]])
def test_every_card_has_an_outline_that_fits_it(name: str) -> None:
    topology = load_topology(name)
    nodes = node_outlines(topology)
    assert sum(node.num_gpus * node.count for node in nodes) == topology.num_devices
    for node in nodes:
        assert len(node.socket_of) == node.num_gpus
        assert node.port is not None
        assert set(node.port_beside) <= set(range(node.num_gpus))
