"""What is between nodes, told from outside: levels of switches with how many there are and what joins them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from clustersim.topology.cluster_router import ClusterRouter, MixedRouter
from clustersim.topology.dragonfly import DragonflyPath
from clustersim.topology.dragonfly_plus import DragonflyPlusPath
from clustersim.topology.fabric_level import Level, shown
from clustersim.topology.fully_connected import FullPath
from clustersim.topology.grid import GridPath
from clustersim.topology.hashed_tree import HashedTree
from clustersim.topology.node_outline import Tie
from clustersim.topology.resources import Block
from clustersim.topology.switch_tree import SwitchTree, Tier
from clustersim.topology.topology import Topology
from clustersim.topology.tree import GROUPS
from clustersim.topology.two_sites import SitesPath
from clustersim.units import show

__all__ = ["FabricOutline", "fabric_outline"]

_RELAYED = "traffic to another rail first goes to the GPU of that rail in its own node"


@dataclass(frozen=True, kw_only=True, slots=True)
class FabricOutline:
    """The fabric of a cluster.

    Parameters
    ----------
    title : str
        what it is
    levels : tuple[Level, ...]
        from the nodes up
    dims : tuple[int, ...]
        sides of a grid of nodes; empty for all others
    axes : tuple[Tie, ...]
        of a grid: the link to a neighbour along each side of more than one node
    wrap : bool
        whether the lines of a grid are rings
    remarks : tuple[str, ...]
        what a picture does not show
    """

    title: str
    levels: tuple[Level, ...]
    dims: tuple[int, ...] = ()
    axes: tuple[Tie, ...] = ()
    wrap: bool = False
    remarks: tuple[str, ...] = ()


def fabric_outline(topology: Topology) -> FabricOutline | None:
    """The fabric of a cluster; None for a machine on its own, or one whose fabric is none of the families here."""
    router = topology.router
    ways = router.ways if isinstance(router, MixedRouter) else router
    if not isinstance(ways, ClusterRouter) or ways.crossing is None:
        return None
    blocks = {block.label: block for block in topology.resources.blocks}
    ports = [block for block in topology.resources.blocks if block.kind == "nic" and block.label.endswith(".tx")]
    port = max(ports, key=lambda block: block.capacity)
    outline = _of_path(ways.crossing.path, topology.num_nodes, port, blocks)
    if outline is None:
        return None
    remarks = [*outline.remarks, *([_RELAYED] if ways.crossing.relay_rails else [])]
    if len({block.capacity for block in ports}) > 1:
        each = (f"{show(b.capacity, 'B/s')} on nodes {b.start} to {b.start + b.shape[0] - 1}" for b in ports)
        remarks.append(f"network ports carry {', '.join(each)}")
        nodes, *switches = outline.levels
        outline = replace(outline, levels=(replace(nodes, at_most=True), *switches))
    return replace(outline, remarks=tuple(remarks))


def _of_path(path: object, num_nodes: int, port: Block, blocks: Mapping[str, Block]) -> FabricOutline | None:
    if isinstance(path, HashedTree):
        return _tree(path.groups, num_nodes, port, blocks, hashed=True)
    if isinstance(path, SwitchTree):
        return _tree(path, num_nodes, port, blocks, hashed=False)
    if isinstance(path, SitesPath):
        return _sites(path, num_nodes, port, blocks)
    if isinstance(path, DragonflyPath):
        return _dragonfly(path, port, blocks)
    if isinstance(path, DragonflyPlusPath):
        return _dragonfly_plus(path, port, blocks)
    if isinstance(path, GridPath):
        ties = tuple(Tie.of(block) for label, block in blocks.items() if label.endswith(".plus"))
        kind = ("torus" if len(path.dims) > 1 else "ring") if path.wrap else "mesh"
        level = Level(name="node", count=num_nodes)
        sides = " x ".join(map(str, path.dims))
        return FabricOutline(
            title=f"{kind} of {sides} nodes", levels=(level,), dims=path.dims, axes=ties, wrap=path.wrap
        )
    if isinstance(path, FullPath):
        peers = blocks.get("node{}/peer{}.out")
        level = Level(name="node", count=num_nodes, peers=Tie.of(peers) if peers else None)
        return FabricOutline(title="a link between each two nodes", levels=(level,))
    return None


def _tree(path: SwitchTree, num_nodes: int, port: Block, blocks: Mapping[str, Block], *, hashed: bool) -> FabricOutline:
    first, num_ports = path.levels[0], path.num_ports
    levels = [
        Level.under(
            "node", num_nodes, lambda n: [_group(first, n, p) for p in range(num_ports)], port, num_up=num_ports
        )
    ]
    remarks = []
    for k, (tier, name) in enumerate(zip(path.levels, path.names, strict=True)):
        count = -(-num_nodes // tier.nodes) * tier.rails
        switches = path.levels[k - 1].num_above if k else 1
        if k == len(path.levels) - 1:
            levels.append(Level(name=name, count=count, num_switches=switches))
            continue
        above, link = path.levels[k + 1], blocks[f"{name}{{}}/up[{{}}]" if hashed else f"{name}{{}}/up"]
        bundle = (
            link if not hashed else replace(link, capacity=link.capacity * tier.num_uplinks, num_links=tier.num_uplinks)
        )

        def parent(g: int, tier: Tier = tier, above: Tier = above) -> list[int]:
            return [_group(above, g // tier.rails * tier.nodes, g % tier.rails)]

        levels.append(Level.under(name, count, parent, bundle, num_switches=switches))
        if k == 0:
            into = min(tier.nodes, num_nodes) * num_ports // tier.rails * port.capacity
            if into > 1.01 * bundle.capacity:
                remarks.append(f"leaves are over-subscribed {into / bundle.capacity:.3g} to 1")
    kind = "rail-optimised tree" if first.rails > 1 else "fat tree"
    height = f"{len(path.levels)} level{'s' * (len(path.levels) != 1)} of switches"
    if hashed:
        remarks.append("each flow keeps to one of the parallel links (hashed ECMP)")
    return FabricOutline(title=f"{kind}, {height}", levels=tuple(levels), remarks=tuple(remarks))


def _sites(path: SitesPath, num_nodes: int, port: Block, blocks: Mapping[str, Block]) -> FabricOutline:
    sites = len(path.starts)

    def site_of(node: int) -> int:
        return sum(start <= node for start in path.starts) - 1

    def group(k: int, node: int, p: int) -> int:
        if k == len(path.nodes):
            return site_of(node)
        site = site_of(node)
        return site * path.groups[k] + (node - path.starts[site]) // path.nodes[k] * path.rails[k] + p % path.rails[k]

    levels = [
        Level.under("node", num_nodes, lambda n: [group(0, n, p) for p in range(path.num_ports)], port, path.num_ports)
    ]
    for k, (nodes, rails, groups) in enumerate(zip(path.nodes, path.rails, path.groups, strict=True)):

        def parent(g: int, k: int = k, nodes: int = nodes, rails: int = rails, groups: int = groups) -> list[int]:
            site, place = divmod(g, groups)
            return [group(k + 1, path.starts[site] + place // rails * nodes, place % rails)]

        levels.append(Level.under(GROUPS[k], sites * groups, parent, blocks[f"site{{}}/{GROUPS[k]}{{}}/up"]))
    levels.append(Level(name="site", count=sites, peers=Tie.of(blocks["site{}/peer{}/wan"])))
    delay = blocks["site{}/peer{}/wan"].latency
    remark = f"the wide-area network takes {delay * 1e3:.3g} ms one way"
    return FabricOutline(title=f"{sites} sites, a tree of switches in each", levels=tuple(levels), remarks=(remark,))


def _dragonfly(path: DragonflyPath, port: Block, blocks: Mapping[str, Block]) -> FabricOutline:
    def routers(node: int) -> list[int]:
        group, place = divmod(node // path.nodes_per_router, path.routers // path.rails)
        return [group * path.routers + place * path.rails + p % path.rails for p in range(path.num_ports)]

    local, across = blocks.get("group{}/router{}/local{}"), blocks.get("group{}/peer{}/global{}")
    levels = (
        Level.under("node", path.num_nodes, routers, port, path.num_ports),
        Level(
            name="router",
            count=path.used * path.routers,
            parents=tuple((r // path.routers,) for r in shown(path.used * path.routers)),
            peers=Tie.of(local) if local else None,
            peers_within="a group",
        ),
        Level(name="group", count=path.used, peers=_bundled(across, path.gateways), num_switches=path.routers),
    )
    return FabricOutline(title="dragonfly", levels=levels, remarks=_wired(path.groups, path.used))


def _dragonfly_plus(path: DragonflyPlusPath, port: Block, blocks: Mapping[str, Block]) -> FabricOutline:
    leaves = path.used * path.leaves
    levels = (
        Level.under("node", path.num_nodes, lambda n: [n // path.nodes_per_leaf], port, path.num_ports),
        Level.under("leaf", leaves, lambda leaf: [leaf // path.leaves], blocks["group{}/leaf{}/up"]),
        Level(name="group", count=path.used, peers=_bundled(blocks.get("group{}/peer{}/global"), 1)),
    )
    return FabricOutline(title="dragonfly+", levels=levels, remarks=_wired(path.groups, path.used))


def _wired(groups: int, used: int) -> tuple[str, ...]:
    return (f"{used} of the {groups} groups that the machine is wired for have nodes",) if used < groups else ()


def _bundled(block: Block | None, count: int) -> Tie | None:
    if block is None:
        return None
    return Tie(kind=block.kind, capacity=block.capacity * count, num_links=block.num_links * count)


def _group(tier: Tier, node: int, port: int) -> int:
    return node // tier.nodes * tier.rails + port % tier.rails
