"""What check finds, and that the families have nothing to find."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.check import check, require_sound
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


def test_devices_that_cannot_reach_each_other_are_refused(parts):
    graph = nx.Graph()
    graph.add_nodes_from("ab", role="gpu")
    with pytest.raises(BadInput) as error:
        Topology.from_networkx(graph, gpu=parts.gpu, cpu=parts.cpu)
    assert [fault.key for fault in error.value.faults] == ["route 0 -> 1", "route 1 -> 0"]


def test_a_link_that_carries_nothing_is_found(make):
    topology = make(1)
    empty = topology.resources.with_capacity(np.array([4]), np.array([0]))
    assert check(replace(topology, resources=empty))[0].key == "node0/gpu4/nvlink.up"


def test_a_route_over_nothing_that_exists_is_found(make):
    topology = make(1)
    wild = replace(topology, router=lambda source, destination: np.full((len(source), 1), 10**6))
    assert "must cross resources 0 to" in check(wild)[0].rule


def test_a_latency_below_zero_is_found(make):
    topology = make(1)
    topology.resources.latency_ns[3] = -5
    assert [(fault.key, fault.value) for fault in check(topology)] == [("node0/gpu3/nvlink.up", -5)]


def test_each_bad_path_of_a_device_is_found(make):
    topology = make(1)
    hbm = topology.local["hbm"]
    rows = hbm.rows.copy()
    rows[2], rows[5] = -1, 10**6
    bad = {
        "hbm": replace(hbm, rows=rows),
        "dram": replace(topology.local["dram"], latency=-1.0),
        "h2d": replace(topology.local["h2d"], per_byte=np.array([1.0, float("nan")])),
    }
    keys = {fault.key for fault in check(replace(topology, local={**topology.local, **bad}))}
    assert keys == {"hbm of device 2", "hbm of device 5", "dram.latency", "h2d.per_byte"}


@pytest.mark.parametrize("name", ["leaf3/down", "node70/nic2.rx", "node7/gpu2/pcie.up"])
def test_of_a_large_cluster_every_link_is_held_to_its_way_back(make, name):
    """Also one that no sampled pair crosses."""
    (fault,) = [f for f in check(make(80).with_capacity({name: 0.5})) if not f.key.startswith("route")]
    assert {fault.key, fault.rule.split()[5]} == {name, _back(name)}


def _back(name):
    for one, other in (("down", "up"), (".rx", ".tx"), (".up", ".down")):
        if name.endswith(one):
            return name.removesuffix(one) + other
    raise AssertionError(name)


def test_links_that_some_mean_to_be_uneven_are_a_note_and_nonsense_is_refused(make):
    uneven = make(2).with_capacity({"leaf0/up": 0.5})
    assert require_sound(uneven).notes[0].startswith("leaf0/up: ")
    assert require_sound(make(2)).notes == ()
    empty = uneven.resources.with_capacity(np.array([4]), np.array([0]))
    with pytest.raises(BadInput, match=r"node0/gpu4/nvlink\.up"):
        require_sound(replace(uneven, resources=empty))


def test_131072_gpus_are_checked_in_less_than_a_second(make, least_time):
    topology = make(16384)
    took, faults = least_time(lambda: check(topology))
    assert faults == []
    assert took < 1
