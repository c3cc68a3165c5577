"""The settings of what joins GPUs and nodes: changes of a topology card."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.library.keys.key import TOPOLOGY, Key
from clustersim.library.values import Flag, Name, Number, Quantity, Whole, Wholes, Word

__all__ = ["FABRIC_KEYS"]

FABRIC_KEYS: Mapping[str, Key] = {
    "fabric": Key(
        Name(
            "fat_tree, rail_optimized, dragonfly, dragonfly_plus, torus, mesh, ring, fully_connected, two_sites or "
            "my_package.module:function"
        ),
        "what joins nodes",
        otherwise=TOPOLOGY,
    ),
    "fabric.oversubscription": Key(Number(1), "bandwidth into a leaf over bandwidth out of it", otherwise=TOPOLOGY),
    "fabric.levels": Key(Whole(1, 4), "levels of switches", otherwise="as few as hold the nodes"),
    "fabric.radix": Key(Whole(2, 2**16), "ports of a switch", otherwise="the switch's own"),
    "fabric.ecmp": Key(
        Word(("ideal", "hashed")), "how flows take parallel links: evenly, or each one by hash of its ports", "ideal"
    ),
    "fabric.ecmp_seed": Key(Whole(0, 2**32 - 1), "of the hash", 0),
    "fabric.nic_of": Key(Wholes(0, 1023, 1024), "network port of each GPU of a node", otherwise="in order"),
    "fabric.sharp": Key(Flag(), "network switches add up what passes them", otherwise=TOPOLOGY),
    "fabric.link": Key(
        Name("a link card"), "link between neighbours: torus, mesh, ring, fully_connected", otherwise=TOPOLOGY
    ),
    "fabric.num_links": Key(Whole(1, 2**16), "parallel links between neighbours", otherwise="the topology's own, or 1"),
    "fabric.dims": Key(
        Wholes(1, 2**17, 3), "nodes along each side of a torus or mesh", otherwise="as even as the nodes allow"
    ),
    "fabric.num_dims": Key(
        Whole(1, 3), "sides of a torus or mesh without fabric.dims", otherwise="3 of a torus, 2 of a mesh"
    ),
    "fabric.groups": Key(
        Whole(1, 2**17), "groups that a dragonfly is wired for", otherwise="those that the nodes fill"
    ),
    "fabric.routers_per_group": Key(Whole(1, 2**16), "of a dragonfly", otherwise="half the radix"),
    "fabric.nodes_per_router": Key(Whole(1, 2**16), "of a dragonfly", otherwise="what a quarter of the radix holds"),
    "fabric.leaves_per_group": Key(Whole(1, 2**16), "of a dragonfly_plus", otherwise="half the radix"),
    "fabric.spines_per_group": Key(Whole(1, 2**16), "of a dragonfly_plus", otherwise="half the radix"),
    "fabric.nodes_per_leaf": Key(Whole(1, 2**16), "of a dragonfly_plus", otherwise="what half the radix holds"),
    "fabric.rails": Key(
        Whole(1, 2**10),
        "switches side by side that the ports of a node spread over: rail_optimized, dragonfly",
        otherwise="one for each port",
    ),
    "fabric.global_links": Key(
        Whole(1, 2**16),
        "ports to other groups: of a router of a dragonfly, of a spine of a dragonfly_plus",
        otherwise="a quarter of the radix, half of a spine's",
    ),
    "fabric.local_links": Key(
        Whole(1, 2**10), "links between each two switches inside a group", otherwise="the topology's own, or 1"
    ),
    "fabric.group_links": Key(
        Whole(1, 2**20), "links between each two groups of a dragonfly", otherwise="as many as the ports allow"
    ),
    "fabric.within": Key(
        Word(("fat_tree", "rail_optimized")), "fabric of each of two_sites", otherwise="the topology's own, or fat_tree"
    ),
    "fabric.sites": Key(Whole(2, 2**10), "sites of two_sites", otherwise="the topology's own, or 2"),
    "fabric.wan_bandwidth": Key(
        Quantity("B/s", "800 Gb/s"), "payload between two sites, one direction", otherwise=TOPOLOGY, unit="B/s"
    ),
    "fabric.wan_latency": Key(Quantity("s", "103 ms"), "one way between two sites", otherwise=TOPOLOGY, unit="s"),
    "nics_per_node": Key(Whole(1, 1024), "network cards of a node", otherwise=TOPOLOGY),
    "node.p2p": Key(Flag(), "GPUs on PCIe reach each other's memory; else through the host's", otherwise=TOPOLOGY),
}
"""By dotted name."""
