"""PCIe alone: peer to peer over shared uplinks, or through host memory where the driver refuses it."""

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.cluster import connect
from clustersim.topology.host import Host
from clustersim.topology.pcie_tree import pcie_tree


@pytest.fixture
def box(parts):
    def build(*, p2p=True, staged_bandwidth=None, **host):
        settings = {"cpu": parts.cpu, "num_sockets": 2, "link": parts.pcie, "socket_link": parts.pcie, **host}
        node = pcie_tree(gpu=parts.gpu, num_gpus=4, host=Host(**settings), p2p=p2p, staged_bandwidth=staged_bandwidth)
        return connect(node, None, name="box")

    return build


def test_peers_cross_their_lanes_and_what_they_do_not_share(box, names):
    topology = box()
    assert names(topology, 0, 1) == ["node0/gpu0/pcie.up", "node0/gpu1/pcie.down"]
    assert names(topology, 1, 2) == ["node0/gpu1/pcie.up", "node0/cpu0/socket.out", "node0/gpu2/pcie.down"]


def test_the_root_complex_carries_every_pair_of_its_socket(box, parts):
    topology = box(root_complex=parts.pcie, num_sockets=1)
    root = topology.resources.find("node0/cpu0/root.up")
    source, destination = np.nonzero(~np.eye(4, dtype=bool))
    assert (topology.route(source, destination) == root).sum() == 12


def test_gpus_under_one_switch_never_leave_it(box, names):
    topology = box(pcie_switch_of=(0, 0, 1, 1))
    assert names(topology, 0, 1) == ["node0/gpu0/pcie.up", "node0/gpu1/pcie.down"]
    assert "node0/pcie0/up" in names(topology, 0, 2)


def test_without_peer_access_host_memory_is_written_and_read(box, names):
    topology = box(p2p=False)
    assert names(topology, 0, 1) == [
        "node0/gpu0/pcie.up",
        "node0/cpu0/dram",
        "node0/cpu0/dram",
        "node0/gpu1/pcie.down",
    ]
    assert names(topology, 0, 3)[1:4] == ["node0/cpu0/socket.out", "node0/cpu1/dram", "node0/cpu1/dram"]


def test_what_a_gpu_receives_through_the_host_may_be_slower_than_its_lanes(box, names):
    topology = box(p2p=False, staged_bandwidth=1e9)
    assert names(topology, 0, 1)[-1] == "node0/gpu1/staged.in"
    assert topology.resources.capacity[topology.resources.find("node0/gpu1/staged.in")] == 1e9
    assert names(box(staged_bandwidth=1e9), 0, 1) == names(box(), 0, 1)
    with pytest.raises(BadInput, match=r"node\.staged_bandwidth: 0\.0"):
        box(p2p=False, staged_bandwidth=0.0)
