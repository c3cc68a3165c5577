"""What check finds, and that the families have nothing to find."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from clustersim.topology.check import check
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.rail_optimized import rail_optimized
from clustersim.topology.topology import Topology


@pytest.mark.parametrize("family", [rail_optimized, fat_tree])
@pytest.mark.parametrize("num_nodes", [1, 9, 80])
def test_the_families_are_sound(make, family, num_nodes):
    assert check(make(num_nodes, family)) == []


def test_a_way_back_that_is_narrower_is_found(make):
    faults = check(make(2).with_capacity({"node0/gpu2/nvlink.up": 0.5}))
    assert {fault.key for fault in faults} >= {"route 0 -> 2", "route 2 -> 3"}


def test_devices_that_cannot_reach_each_other_are_found(parts):
    graph = nx.Graph()
    graph.add_nodes_from("ab", role="gpu")
    faults = check(Topology.from_networkx(graph, gpu=parts.gpu, cpu=parts.cpu))
    assert [fault.key for fault in faults] == ["route 0 -> 1", "route 1 -> 0"]


def test_a_link_that_carries_nothing_is_found(make):
    topology = make(1)
    empty = topology.resources.with_capacity(np.array([4]), np.array([0]))
    assert check(replace(topology, resources=empty))[0].key == "node0/gpu4/nvlink.up"


def test_a_route_over_nothing_that_exists_is_found(make):
    topology = make(1)
    wild = replace(topology, router=lambda source, destination: np.full((len(source), 1), 10**6))
    assert "must cross resources 0 to" in check(wild)[0].rule
