"""Topology cards: all of the library's load and are sound; overrides; a user's own card and builder; every fault."""

import sys
import types

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.hardware.switch import Switch
from clustersim.library.card import list_cards
from clustersim.library.topologies import load_topology
from clustersim.topology.check import check
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.fat_tree import fat_tree

CARDS = [name for name, _ in list_cards()["topology"]]

GPUS_PER_NODE = {
    "a100-pcie-3": 3,
    "a100-pcie-pairs": 4,
    "dgx1-v100": 8,
    "dgx2-v100": 16,
    "frontier": 8,
    "gb200-nvl72": 72,
    "gb300-nvl72": 72,
    "gh200": 1,
    "gh200-quad": 4,
    "h100-pcie-pairs": 4,
    "perlmutter": 4,
    "two-sites-t4": 2,
    "workstation-4090": 4,
    "azure-nc96ads-a100-v4": 4,
    "jlse-h100": 4,
    "polaris": 4,
    "jlse-h100-1gpu": 1,
    "jlse-h100-2gpu": 2,
    "polaris-1gpu": 1,
    "dgx2-v100-1gpu": 1,
    "dgx-a100-40gb-2gpu": 2,
}


MIXES = {"mixed-a100-h100"}


@pytest.mark.parametrize("name", CARDS)
class TestEveryCard:
    def test_loads_and_is_sound_at_several_sizes(self, name):
        for nodes in (2, 40) if name in MIXES else (1, 3, 40):
            topology = load_topology(name, nodes=nodes)
            assert topology.num_devices == nodes * GPUS_PER_NODE.get(name, 8)
            assert topology.num_nodes == nodes
            assert check(topology) == []

    def test_has_memory_paths_and_sources(self, name):
        topology = load_topology(name)
        assert {"hbm", "dram", "h2d", "d2h"} <= set(topology.local)
        assert ("nvme" in topology.tier_bytes) == ("nvme_read" in topology.local)
        assert all(source for source in topology.sources.values())
        assert topology.name == name


def narrowest(topology, source, destination):
    rows = topology.route(np.array([source]), np.array([destination]))[0]
    return topology.resources.capacity[rows[rows >= 0]].min()


@pytest.mark.parametrize(
    ("name", "num_links", "one"),
    [
        ("dgx-a100", 12, 25e9),
        ("dgx-h100", 18, 25e9),
        ("hgx-h800", 8, 25e9),
        ("dgx-b200", 18, 50e9),
        ("gb200-nvl72", 18, 50e9),
        ("dgx2-v100", 6, 25e9),
    ],
)
def test_scale_up_bandwidth_is_the_data_sheets_times_the_payload_share(name, num_links, one):
    topology = load_topology(name)
    share = narrowest(topology, 0, topology.num_devices - 1) / (num_links * one)
    assert 0.7 < share < 1


@pytest.mark.parametrize(
    ("name", "rate"), [("dgx-a100", 25e9), ("dgx-h100", 50e9), ("dgx1-v100", 12.5e9), ("gh200", 50e9)]
)
def test_scale_out_is_the_line_rate_of_a_port_times_the_payload_share(name, rate):
    topology = load_topology(name, nodes=2)
    assert 0.85 < narrowest(topology, 0, topology.num_devices // 2) / rate < 1


class TestOverrides:
    def test_dotted_keys_reach_the_fabric(self):
        topology = load_topology("dgx-h100", nodes=64, **{"fabric": "fat_tree", "fabric.oversubscription": 3})
        leaf = topology.router.crossing.path.tiers[0]
        assert (leaf.nodes, leaf.rails, leaf.num_uplinks) == (6, 1, 16)
        radix = load_topology("dgx-h100", nodes=64, **{"fabric.radix": 16, "fabric.levels": 3})
        assert [tier.nodes for tier in radix.router.crossing.path.tiers] == [8, 8]

    def test_fewer_nics_are_shared(self):
        topology = load_topology("dgx-h100", nodes=2, nics_per_node=4)
        rows = topology.route(np.array([0, 1]), np.array([8, 9]))
        assert rows[0, 1] == rows[1, 1]

    def test_what_another_fabric_has_no_place_for_is_left_out_with_a_note(self):
        topology = load_topology("hgx-mi300x", nodes=2, fabric="fat_tree")
        assert "fabric.pxn of hgx-mi300x has no place in fat_tree and was left out" in topology.notes

    @pytest.mark.parametrize(
        ("overrides", "key", "nearest"),
        [
            ({"nodes": 0}, "nodes", 1),
            ({"nodes": True}, "nodes", 1),
            ({"fabric": "fat-tree"}, "fabric", "fat_tree"),
            ({"fabric.levls": 2}, "fabric.levls", "levels"),
            ({"fabric.ecmp": "hash"}, "fabric.ecmp", "hashed"),
            ({"fabric.ecmp_seed": -1}, "fabric.ecmp_seed", 0),
            ({"nics_per_node": 3}, "nics_per_node", 2),
            ({"node.gpu": "h100"}, "node.gpu", "h100-sxm"),
            ({"fabrik": "fat_tree"}, "fabrik", "fabric"),
        ],
    )
    def test_faults_are_the_callers_not_the_files(self, overrides, key, nearest):
        with pytest.raises(BadInput) as error:
            load_topology("dgx-h100", **overrides)
        (fault,) = error.value.faults
        assert (fault.key, fault.nearest, fault.file) == (key, nearest, "")


MINE = """
[node]
build = "nvswitch"
gpu = "a100-sxm-80gb"
num_gpus = 2
link = "nvlink3"
num_links = 4
switch = "nvswitch2"

[host]
cpu = "epyc-7742"
num_sockets = 1
link = "pcie4"

[sources]
"node.num_gpus" = "assumed: mine"
"node.num_links" = "assumed: mine"
"host.num_sockets" = "assumed: mine"
"""

FABRIC = """
[fabric]
build = "{build}"
nic = "connectx-6"
nics_per_node = 2
switch = "quantum"
"""


def flat(*, ports: Ports, switch: Switch, num_nodes: int, radix: int = 8) -> Fabric:
    """One switch of few ports."""
    return fat_tree(ports=ports, switch=switch, num_nodes=num_nodes, radix=radix, levels=1)


class TestOwnCard:
    @pytest.fixture
    def card(self, tmp_path):
        def write(text):
            path = tmp_path / "mine.toml"
            path.write_text(text)
            return path

        return write

    def test_a_file_without_a_network_is_one_machine(self, card):
        assert load_topology(card(MINE)).num_devices == 2
        with pytest.raises(BadInput, match="needs a fabric"):
            load_topology(card(MINE), nodes=2)
        with pytest.raises(BadInput, match="mine has no fabric"):
            load_topology(card(MINE), fabric="fat_tree")

    def test_an_own_builder_is_called_by_its_path(self, card, monkeypatch):
        module = types.ModuleType("my_fabrics")
        module.flat = flat
        monkeypatch.setitem(sys.modules, "my_fabrics", module)
        text = MINE + '"fabric.nics_per_node" = "assumed: mine"\n' + FABRIC.format(build="my_fabrics:flat")
        assert load_topology(card(text), nodes=4).num_devices == 8
        with pytest.raises(BadInput, match=r"fabric\.levels"):
            load_topology(card(text), nodes=5)

    @pytest.mark.parametrize("build", ["my_fabrics:flat", "json:nothing", "json:__name__"])
    def test_a_builder_that_cannot_be_had_is_refused(self, card, build):
        text = MINE + '"fabric.nics_per_node" = "assumed: mine"\n' + FABRIC.format(build=build)
        with pytest.raises(BadInput, match=r"fabric\.build"):
            load_topology(card(text))

    def test_faults_of_every_table_come_at_once_with_their_file(self, card):
        text = (
            MINE.replace('"nvlink3"', '"nvlink33"')
            .replace("num_gpus = 2", "num_gpu = 2")
            .replace('"node.num_gpus"', '"node.num_gpu"')
            .replace("num_sockets = 1", 'num_sockets = "one"')
        )
        path = card(text)
        with pytest.raises(BadInput) as error:
            load_topology(path)
        assert {fault.key for fault in error.value.faults} == {
            "node.link",
            "node.num_gpu",
            "node.num_gpus",
            "host.num_sockets",
        }
        assert {fault.file for fault in error.value.faults} == {str(path)}

    def test_sockets_that_nothing_joins_are_told(self, card):
        text = MINE.replace("num_sockets = 1", "num_sockets = 2")
        told = "host.socket_link: not given: sockets of a node reach each other without limit"
        assert told in load_topology(card(text)).notes
        assert told not in load_topology(card(MINE)).notes

    def test_a_number_without_a_source_is_refused(self, card):
        with pytest.raises(BadInput, match=r"sources\.node\.num_links"):
            load_topology(card(MINE.replace('"node.num_links" = "assumed: mine"', "")))

    def test_a_host_that_the_node_brings_itself_has_no_place(self, card):
        text = """
        [node]
        build = "superchip"
        superchip = "gh200"
        num_superchips = 1
        [host]
        cpu = "grace"
        [sources]
        "node.num_superchips" = "assumed: mine"
        """
        with pytest.raises(BadInput, match=r"host\.cpu: .* has no place"):
            load_topology(card(text))


TWO_KINDS = """
[[mix]]
topology = "dgx-a100"
count = 1

[[mix]]
count = 2
nic = "connectx-7"
nics_per_node = 2
node = {{ build = "nvswitch", gpu = "h100-sxm", num_gpus = 4, link = "nvlink4", num_links = 18, switch = "nvswitch3" }}
host = {{ cpu = "xeon-8480c", num_sockets = 2, link = "pcie5" }}
{more}
[fabric]
build = "{build}"
switch = "quantum-2"

[sources]
mix = "assumed: mine"
"""


class TestMix:
    @pytest.fixture
    def mixed(self, tmp_path):
        def load(build="rail_optimized", more="", **overrides):
            (tmp_path / "mine.toml").write_text(TWO_KINDS.format(build=build, more=more))
            return load_topology(tmp_path / "mine.toml", **overrides)

        return load

    @pytest.mark.parametrize("build", ["rail_optimized", "fat_tree"])
    def test_nodes_of_unequal_size_are_numbered_in_order(self, mixed, build):
        topology = mixed(build)
        assert np.bincount(topology.node_of).tolist() == [8, 4, 4]
        assert [topology.gpus[i].name for i in topology.gpu_of] == ["a100-sxm-80gb"] * 8 + ["h100-sxm"] * 8
        assert check(topology) == []
        assert topology.multicast.tolist() == [False] * 8 + [True] * 8

    def test_each_kind_has_its_own_ports(self, mixed):
        resources = mixed().resources
        rate = {name: resources.capacity[resources.find(name)] for name in ("node0/nic0.tx", "node1/nic1.rx")}
        assert rate == {"node0/nic0.tx": 24e9, "node1/nic1.rx": 48e9}

    def test_paths_that_not_all_have_are_left_out_with_a_note(self, mixed):
        topology = mixed()
        assert not any(name.startswith("nvme") for name in topology.local)
        lacking = "socket.spread, socket.far, nvme_read, nvme_read.direct, nvme_write, nvme_write.direct"
        assert f"{lacking}: left out, since not every kind of node has them" in topology.notes

    def test_more_nodes_keep_the_proportions(self, mixed):
        assert np.bincount(mixed(nodes=6).node_of).tolist() == [8, 8, 4, 4, 4, 4]
        with pytest.raises(BadInput, match="stand 1:2") as error:
            mixed(nodes=7)
        assert (error.value.faults[0].key, error.value.faults[0].nearest) == ("nodes", 6)

    def test_every_fault_of_every_entry(self, mixed):
        more = """
[[mix]]
topology = "dgx-h100"
nodes = 2
count = 0

[[mix]]
count = 1

[[mix]]
topology = "dgx-h200"
count = 1

[[mix]]
topology = "mixed-a100-h100"
count = 1

[[mix]]
topology = "dgx-h100"
count = 1
nic = "connectx-9"
"""
        with pytest.raises(BadInput) as error:
            mixed(more=more)
        found = {fault.key: fault.nearest for fault in error.value.faults}
        assert found == {
            "mix.2.nodes": "node",
            "mix.2.count": 1,
            "mix.3": None,
            "mix.4.topology": "hgx-h200",
            "mix.5.topology": None,
            "mix.6.nic": "connectx-8",
        }

    def test_a_node_beside_a_mix_has_no_place(self, mixed):
        with pytest.raises(BadInput, match="has no place beside mix"):
            mixed(**{"node.num_gpus": 4})


class TestStorage:
    def test_settings_make_one(self):
        given = {"storage.read_bandwidth": 1e11, "storage.write_bandwidth": "50 GB/s", "storage.nic": "ethernet-100g"}
        topology = load_topology("dgx-h100", nodes=2, **given)
        assert {"fs_read", "fs_write"} <= set(topology.local)
        assert topology.resources.capacity[topology.resources.find("storage/write")] == 50e9
        assert "fs_read" not in load_topology("dgx-h100").local

    def test_its_faults_come_with_the_others(self):
        with pytest.raises(BadInput) as error:
            load_topology("dgx-h100", **{"storage.nic": "ethernet-99g", "storage.over": "neither", "node.gpu": "h1000"})
        assert {fault.key for fault in error.value.faults} >= {"storage.read_bandwidth", "storage.over", "node.gpu"}


class TestAffinity:
    def test_which_port_a_gpu_has_is_a_setting(self):
        swapped = load_topology("dgx-h100", nodes=2, **{"fabric.nic_of": (1, 0, 3, 2, 5, 4, 7, 6)})
        rows = swapped.route(np.array([0]), np.array([8]))[0]
        assert "node0/nic1.tx" in swapped.resources.names(rows[rows >= 0])
        with pytest.raises(BadInput) as error:
            load_topology("dgx-h100", **{"fabric.nic_of": (0, 0, 0)})
        assert error.value.faults[0].key == "fabric.nic_of"

    def test_peer_access_is_a_setting(self):
        for p2p in (True, False):
            topology = load_topology("workstation-4090", **{"node.p2p": p2p})
            rows = topology.route(np.array([0]), np.array([1]))[0]
            assert any("dram" in name for name in topology.resources.names(rows[rows >= 0])) is not p2p
        with pytest.raises(BadInput) as error:
            load_topology("dgx-h100", **{"node.p2p": False})
        assert error.value.faults[0].key == "node.p2p"
