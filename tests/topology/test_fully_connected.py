"""A link for every two nodes."""

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.check import check
from clustersim.topology.fully_connected import fully_connected


def test_every_two_nodes_have_a_link_of_their_own(wire, names):
    topology = wire(fully_connected, 5, num_gpus=2, num_links=3)
    assert names(topology, 0, 9)[2] == "node0/peer3.out"
    assert names(topology, 9, 0)[2] == "node4/peer0.out"
    source, destination = np.nonzero(~np.eye(10, dtype=bool))
    rows = topology.route(source, destination)
    direct = [topology.resources.find(f"node{a}/peer{b}.out") for a in range(5) for b in range(4)]
    load = np.array([(rows == row).sum() for row in direct])
    assert (load == 4).all()  # each GPU of one node to each of the other
    assert topology.resources.block(direct[0]).num_links == 3
    assert topology.resources.capacity[direct].tolist() == [1_080_000_000_000] * 20  # three of 400 GB/s at 0.9
    assert check(topology) == []


def test_one_node_has_no_links(wire):
    assert "direct" not in wire(fully_connected, 1).resources.kinds


def test_numbers_out_of_range(wire):
    with pytest.raises(BadInput) as error:
        wire(fully_connected, 2000, num_links=0)
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == [("nodes", 1024), ("fabric.num_links", 1)]
