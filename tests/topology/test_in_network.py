"""Switches that reduce: which engines a route crosses, how wide they are, who is refused."""

from dataclasses import replace

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.cluster import connect
from clustersim.topology.fabric import Ports
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.nvswitch import nvswitch
from clustersim.topology.rail_optimized import rail_optimized

GB = 10**9


@pytest.fixture
def reducing(parts, make):
    """As ``make``, on switches that produce 60 GB/s and hold three trees."""
    parts = replace(parts.switch, reduction_bandwidth=60e9, reduction_slots=3)
    return lambda num_nodes, family, **given: make(num_nodes, _with(family, parts), sharp=True, **given)


def _with(family, switch):
    return lambda **given: family(**{**given, "switch": switch})


def engines(topology, source, destination):
    rows = topology.in_network.router(np.array([source]), np.array([destination]))[0]
    return [name for name in topology.resources.names(rows[rows >= 0]) if name.endswith("/reduce")]


def test_a_route_crosses_the_engine_of_each_switch_group_once(reducing):
    rails = reducing(65, rail_optimized)  # 32 nodes to a leaf
    assert engines(rails, 3, 8 + 3) == ["leaf3/reduce"]
    assert engines(rails, 3, 8 * 64 + 3) == ["leaf3/reduce", "core0/reduce", "leaf19/reduce"]
    tree = reducing(48, fat_tree, radix=16, levels=3)  # a node to a leaf, 8 leaves to a pod
    assert engines(tree, 0, 8) == ["leaf0/reduce", "pod0/reduce", "leaf1/reduce"]
    assert engines(tree, 0, 64) == ["leaf0/reduce", "pod0/reduce", "core0/reduce", "pod1/reduce", "leaf8/reduce"]
    assert engines(tree, 0, 1) == []


def test_rails_without_a_spine_have_an_engine_each(reducing):
    topology = reducing(40, rail_optimized, levels=1)
    assert [engines(topology, rail, 8 + rail) for rail in range(8)] == [[f"leaf{rail}/reduce"] for rail in range(8)]


@pytest.mark.parametrize(
    ("family", "given"),
    [(rail_optimized, {}), (rail_optimized, {"pxn": False, "radix": 16}), (fat_tree, {"radix": 16, "levels": 3})],
)
def test_but_for_the_engines_it_is_the_topologys_own_route(reducing, family, given):
    topology = reducing(33, family, **given)
    source, destination = np.nonzero(~np.eye(topology.num_devices, dtype=bool))
    with_engines = topology.in_network.router(source[::97], destination[::97])
    plain = topology.route(source[::97], destination[::97])
    reduction = topology.resources.kinds.index("reduction")
    for got, expected in zip(with_engines, plain, strict=True):
        links = got[(got >= 0) & (topology.resources.kind[got] != reduction)]
        assert links.tolist() == expected[expected >= 0].tolist()


def test_a_group_of_several_switches_reduces_as_much_as_they_do_together(reducing):
    topology = reducing(48, fat_tree, radix=16, levels=3)
    resources = topology.resources
    width = {name: resources.capacity[resources.find(f"{name}/reduce")] / (60 * GB) for name in ("leaf0", "pod0")}
    assert width == {"leaf0": 1, "pod0": 8}  # eight leaves of eight uplinks need eight switches with half down
    assert resources.capacity[resources.find("core0/reduce")] == 60 * GB * 6 * 64 // 16  # all ports down
    assert topology.in_network.slots == 3


def test_only_when_asked_for_and_only_switches_that_can(make, parts):
    topology = make(2)
    assert topology.in_network is None
    assert "reduction" not in topology.resources.kinds
    with pytest.raises(BadInput) as error:
        make(0, fat_tree, sharp=True)
    assert [(fault.key, fault.nearest) for fault in error.value.faults] == [("nodes", 1), ("fabric.sharp", False)]


def test_devices_on_switches_that_multicast_say_so(make, parts):
    assert not make(2).multicast.any()
    chip = replace(parts.nvswitch, multicast=True)
    node = nvswitch(gpu=parts.gpu, num_gpus=4, link=parts.nvlink, num_links=1, switch=chip, host=parts.host)
    fabric = fat_tree(ports=Ports.spread(nic=parts.nic, nics_per_node=4, num_gpus=4), switch=parts.switch, num_nodes=2)
    assert connect(node, fabric, name="two", num_nodes=2).multicast.tolist() == [True] * 8
