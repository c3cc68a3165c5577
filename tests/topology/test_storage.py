"""A shared file system: over a network of its own, or over the first port of each node."""

from dataclasses import replace

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.check import check
from clustersim.topology.storage import SharedStorage


def crossed(topology, path, device):
    rows = topology.local[path].rows[device]
    return topology.resources.names(rows[rows >= 0])


def test_a_network_of_its_own_shares_nothing_with_the_fabric(make, parts):
    plain = make(3)
    topology = SharedStorage(read_bandwidth=1e11, write_bandwidth=5e10, latency=1e-3, nic=parts.nic).join(plain)
    assert crossed(topology, "fs_read", 17) == ["storage/read", "node2/storage.rx", "node2/cpu0/dram"]
    assert crossed(topology, "fs_write", 23) == ["node2/cpu1/dram", "node2/storage.tx", "storage/write"]
    found = {name: topology.resources.find(name) for name in ("storage/write", "node0/storage.tx")}
    assert topology.resources.capacity[list(found.values())].tolist() == [5e10, 45e9]
    assert topology.resources.latency_ns[found["storage/write"]] == 1_000_000
    pairs = np.nonzero(~np.eye(24, dtype=bool))
    assert (topology.route(*pairs) == plain.route(*pairs)).all()
    used = set(topology.resources.names(np.unique(topology.route(*pairs).clip(0))))
    assert not used & {"storage/read", "node2/storage.rx"}
    assert check(topology) == []


def test_over_the_compute_fabric_it_meets_the_traffic_of_the_first_port(make, names):
    topology = SharedStorage(read_bandwidth=1e11, write_bandwidth=1e11, over="compute").join(make(2))
    assert crossed(topology, "fs_read", 9)[1] == "node1/nic0.rx"
    assert crossed(topology, "fs_write", 0)[1] == "node0/nic0.tx"
    assert "node0/nic0.tx" in names(topology, 0, 8)
    assert "first network port" in topology.notes[-1]


def test_every_fault_at_once(parts):
    with pytest.raises(BadInput) as error:
        SharedStorage(read_bandwidth=0, write_bandwidth=float("nan"), latency=-1, over="compute", nic=parts.nic)
    assert [fault.key for fault in error.value.faults] == [
        "storage.read_bandwidth",
        "storage.write_bandwidth",
        "storage.latency",
        "storage.nic",
    ]
    with pytest.raises(BadInput, match=r"storage\.nic: None must be given"):
        SharedStorage(read_bandwidth=1e9, write_bandwidth=1e9)


def test_a_machine_without_a_network_has_no_first_port(parts):
    import networkx as nx

    from clustersim.topology.topology import Topology

    graph = nx.Graph()
    graph.add_node("a", role="gpu")
    alone = Topology.from_networkx(graph, gpu=parts.gpu, cpu=parts.cpu)
    storage = SharedStorage(read_bandwidth=1e9, write_bandwidth=1e9, over="compute")
    with pytest.raises(BadInput, match="no network ports"):
        storage.join(alone)
    assert "fs_read" in replace(storage, over="own", nic=parts.nic).join(alone).local
