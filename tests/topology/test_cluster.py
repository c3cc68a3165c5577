"""Equal nodes on a fabric: what holds for every pair, and what it costs at scale."""

import pickle

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.cluster import connect
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.rail_optimized import rail_optimized

SHAPES = [
    (1, rail_optimized, {}),
    (4, rail_optimized, {}),
    (9, rail_optimized, {"radix": 16, "oversubscription": 2}),
    (9, rail_optimized, {"radix": 16, "pxn": False}),
    (6, rail_optimized, {"nics_per_node": 4, "rails": 2}),
    (3, rail_optimized, {"nics_per_node": 32}),
    (6, fat_tree, {"radix": 16, "nics_per_node": 2}),
    (20, fat_tree, {"radix": 16, "levels": 3}),
]


def all_pairs(topology):
    return np.nonzero(~np.eye(topology.num_devices, dtype=bool))


@pytest.mark.parametrize(("num_nodes", "family", "arguments"), SHAPES)
class TestEveryPair:
    def test_routes_cross_what_exists_and_pad_at_the_end(self, make, num_nodes, family, arguments):
        topology = make(num_nodes, family, **arguments)
        rows = topology.route(*all_pairs(topology))
        assert rows.max() < len(topology.resources)
        assert (rows[:, 0] >= 0).all()
        assert (np.diff((rows < 0).astype(int), axis=1) >= 0).all()
        assert (rows[:, -1] >= 0).any()

    def test_routes_are_alike_both_ways(self, make, num_nodes, family, arguments):
        topology = make(num_nodes, family, **arguments)
        source, destination = all_pairs(topology)
        there, back = topology.route(source, destination), topology.route(destination, source)
        assert ((there >= 0).sum(axis=1) == (back >= 0).sum(axis=1)).all()
        latency = np.append(topology.resources.latency_ns, 0)
        assert (latency[there].sum(axis=1) == latency[back].sum(axis=1)).all()

    def test_a_route_does_not_depend_on_its_company(self, make, num_nodes, family, arguments):
        """Asked one by one or all at once, near and far mixed, a pair crosses the same."""
        topology = make(num_nodes, family, **arguments)
        source, destination = all_pairs(topology)
        together = topology.route(source, destination)
        for i in range(0, len(source), max(1, len(source) // 50)):
            alone = topology.route(source[i : i + 1], destination[i : i + 1])[0]
            assert alone.tolist() == together[i][: len(alone)].tolist()
            assert (together[i][len(alone) :] == -1).all()

    def test_names_are_found_again(self, make, num_nodes, family, arguments):
        resources = make(num_nodes, family, **arguments).resources
        names = resources.names()
        assert len(set(names)) == len(names)
        assert [resources.find(name) for name in names] == list(range(len(names)))


def test_names_do_not_change_as_the_cluster_grows(make):
    small, large = make(2).resources, make(40).resources
    assert set(small.names()) <= set(large.names())


def test_devices_are_numbered_node_by_node(make):
    topology = make(3)
    assert topology.node_of.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    assert topology.num_nodes == 3


def test_several_nodes_need_a_fabric(parts):
    node = nvswitch(gpu=parts.gpu, num_gpus=2, link=parts.nvlink, num_links=1, switch=parts.nvswitch, host=parts.host)
    with pytest.raises(BadInput, match="needs a fabric"):
        connect(node, None, name="two", num_nodes=2)


def test_a_fabric_must_be_laid_out_for_the_nodes_gpus(make, parts):
    from clustersim.topology.fabric import Ports

    node = nvswitch(gpu=parts.gpu, num_gpus=4, link=parts.nvlink, num_links=1, switch=parts.nvswitch, host=parts.host)
    ports = Ports.spread(nic=parts.nic, nics_per_node=8, num_gpus=8)
    fabric = rail_optimized(ports=ports, switch=parts.switch, num_nodes=2)
    with pytest.raises(BadInput, match=r"fabric\.nic_of"):
        connect(node, fabric, name="odd", num_nodes=2)


def test_a_topology_can_be_sent_to_another_process(make):
    topology = make(4)
    copy = pickle.loads(pickle.dumps(topology))
    pairs = all_pairs(topology)
    assert (copy.route(*pairs) == topology.route(*pairs)).all()


def test_131072_gpus_are_arrays(make, least_time):
    """Processor time: under a second to lay out; half a million routes take about half a second, twice that here."""
    built, topology = least_time(lambda: make(16384))
    random = np.random.default_rng(0)
    source, destination = random.integers(0, topology.num_devices, (2, 500_000))
    routed, rows = least_time(lambda: topology.route(source, destination))
    assert topology.num_devices == 131_072
    assert rows.shape[0] == 500_000
    assert built < 1
    assert routed < 1
