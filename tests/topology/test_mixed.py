"""Nodes of several kinds on one fabric: who relays, what is shared, what is left out."""

from dataclasses import replace

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.hardware.nic import NIC
from clustersim.topology.check import check
from clustersim.topology.cluster import NodeKind, connect, connect_mixed
from clustersim.topology.fabric import Ports
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.host import Host
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.rail_optimized import rail_optimized


@pytest.fixture
def kind(parts):
    """Nodes of so many GPUs and NICs, with a NIC of their own."""

    def build(count, num_gpus, nics, *, nic=parts.nic, host=None, **gpu):
        card = replace(parts.gpu, **gpu)
        host = host or Host(cpu=parts.cpu, num_sockets=1, link=parts.pcie)
        node = nvswitch(gpu=card, num_gpus=num_gpus, link=parts.nvlink, num_links=10, switch=parts.nvswitch, host=host)
        return NodeKind(node=node, count=count, ports=Ports.spread(nic=nic, nics_per_node=nics, num_gpus=num_gpus))

    return build


@pytest.fixture
def joined(parts):
    def build(kinds, family=rail_optimized, **arguments):
        widest = max((kind.ports for kind in kinds), key=lambda ports: ports.count)
        num_nodes = sum(kind.count for kind in kinds)
        fabric = family(ports=widest, switch=parts.switch, num_nodes=num_nodes, **arguments)
        return connect_mixed(kinds, fabric, name="mixed")

    return build


@pytest.mark.parametrize("family", [rail_optimized, fat_tree])
def test_kinds_that_are_equal_are_as_one(parts, kind, joined, family):
    two = kind(2, 4, 4)
    mixed = joined([two, two], family, radix=8)
    fabric = family(ports=two.ports, switch=parts.switch, num_nodes=4, radix=8)
    plain = connect(two.node, fabric, name="plain", num_nodes=4)
    pairs = np.nonzero(~np.eye(16, dtype=bool))
    for got, expected in zip(mixed.route(*pairs), plain.route(*pairs), strict=True):
        assert mixed.resources.names(got[got >= 0]) == plain.resources.names(expected[expected >= 0])
    assert set(mixed.resources.names()) == set(plain.resources.names())
    assert mixed.gpus == plain.gpus
    for name, path in plain.local.items():
        same = mixed.local[name]
        assert [mixed.resources.names(row) for row in same.rows] == [plain.resources.names(row) for row in path.rows]


def test_names_follow_the_node_across_kinds(kind, joined):
    resources = joined([kind(2, 8, 8), kind(3, 2, 2)]).resources
    names = resources.names()
    assert [resources.find(name) for name in names] == list(range(len(names)))
    assert "node1/gpu7/hbm" in names
    assert "node4/gpu1/hbm" in names
    assert "node2/gpu2/hbm" not in names
    with pytest.raises(KeyError):
        resources.find("node5/gpu0/hbm")
    assert resources.nearest("node4/gpu7/hbm") == "node4/gpu1/hbm"
    assert resources.nearest("node9/gpu0/hbm") == "node4/gpu0/hbm"
    assert resources.nearest("node/gpu/hbm") == "node0/gpu0/hbm"


def test_a_rail_that_a_node_lacks_is_relayed_over_one_that_both_have(kind, joined, names):
    topology = joined([kind(1, 4, 4), kind(2, 2, 2)])
    assert names(topology, 1, 4) == [  # from rail 1 to rail 0: relayed on its own node
        "node0/gpu1/nvlink.up",
        "node0/gpu0/nvlink.down",
        "node0/gpu0/pcie.up",
        "node0/nic0.tx",
        "node1/nic0.rx",
        "node1/gpu0/pcie.down",
    ]
    # a GPU of rail 3 receives from a node without one: over the next rail that both have, then over its own NVLink
    assert names(topology, 4, 3)[1:] == [
        "node1/nic0.tx",
        "node0/nic0.rx",
        "node0/gpu0/pcie.down",
        "node0/gpu0/nvlink.up",
        "node0/gpu3/nvlink.down",
    ]
    assert check(topology) == []


def test_every_pair_meets_on_any_fabric(kind, joined):
    kinds = [kind(2, 8, 4), kind(3, 4, 4), kind(1, 1, 1)]
    for family, arguments in ((rail_optimized, {"levels": 1}), (rail_optimized, {"pxn": False}), (fat_tree, {})):
        topology = joined(kinds, family, **arguments)
        assert np.bincount(topology.node_of).tolist() == [8, 8, 4, 4, 4, 1]
        assert check(topology) == []


def test_a_failed_rail_of_a_mixed_cluster(kind, joined):
    topology = joined([kind(2, 4, 4), kind(2, 2, 2)]).without_links(["rail0"])
    rows = topology.route(*np.nonzero(~np.eye(12, dtype=bool)))
    assert not any("nic0" in name for name in topology.resources.names(np.unique(rows[rows >= 0])))
    with pytest.raises(BadInput, match="no route"):
        joined([kind(2, 4, 4), kind(2, 1, 1)]).without_links(["rail0"])


def test_ports_and_cards_are_each_kinds_own(kind, joined):
    slow = NIC(name="slow", bandwidth=10e9, latency=3e-6)
    topology = joined([kind(1, 2, 2), kind(1, 2, 4, nic=slow, name="other", memory_bandwidth=1e12)])
    found = {name: topology.resources.find(name) for name in ("node0/nic1.tx", "node1/nic1.tx", "node1/gpu0/hbm")}
    assert topology.resources.capacity[found["node0/nic1.tx"]] == 45e9
    assert topology.resources.capacity[found["node1/nic1.tx"]] == 20e9
    assert topology.resources.block(found["node1/nic1.tx"]).num_links == 2
    assert topology.resources.latency_ns[found["node1/nic1.tx"]] == 3000 + 400
    assert topology.resources.capacity[found["node1/gpu0/hbm"]] == 1e12
    assert topology.gpu_of.tolist() == [0, 0, 1, 1]


def test_demands_per_byte_that_differ_stand_side_by_side(kind, joined, parts):
    host = Host(cpu=parts.cpu, num_sockets=1, link=parts.pcie, drive=parts.drive, num_drives=1)
    faster = replace(host, drive=replace(parts.drive, read_bandwidth=10e9, latency=80e-6, capacity_bytes=10**11))
    topology = joined([kind(1, 1, 1, host=host), kind(1, 1, 1, host=faster)])
    read = topology.local["nvme_read"]
    demands = [
        dict(zip(topology.resources.names(row[row >= 0]), read.per_byte[row >= 0], strict=True)) for row in read.rows
    ]
    assert demands == [{"node0/nvme": 0.2, "node0/cpu0/dram": 1.0}, {"node1/nvme": 0.1, "node1/cpu0/dram": 1.0}]
    assert read.latency == 80e-6
    assert topology.tier_bytes["nvme"] == 10**11
    assert any("nvme_read: the latency of the slowest" in note for note in topology.notes)
    assert any("nvme: the capacity of the smallest" in note for note in topology.notes)
    assert len(topology.local["h2d"].per_byte) == 2


def test_nodes_need_a_fabric_and_a_number(kind):
    with pytest.raises(BadInput, match="needs a fabric"):
        connect_mixed([kind(1, 2, 2), kind(1, 4, 4)], None, name="two")
    with pytest.raises(BadInput, match="at least 1"):
        connect_mixed([kind(1, 2, 2), kind(0, 4, 4)], None, name="none")
