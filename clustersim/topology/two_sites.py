"""Sites, each with a tree of switches, joined by a wide-area network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.switch import Switch
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.fat_tree import fat_tree
from clustersim.topology.port_blocks import port_blocks
from clustersim.topology.rail_optimized import rail_optimized
from clustersim.topology.resources import MOST_CAPACITY, Block
from clustersim.units import Unit

__all__ = ["SitesPath", "two_sites"]

_WITHIN = ("fat_tree", "rail_optimized")


def two_sites(
    *,
    ports: Ports,
    switch: Switch,
    num_nodes: int,
    wan_bandwidth: Annotated[float, Unit("B/s")],
    wan_latency: Annotated[float, Unit("s")],
    sites: int = 2,
    within: str = "fat_tree",
    oversubscription: float = 1.0,
    levels: int | None = None,
    radix: int | None = None,
    rails: int | None = None,
    pxn: bool | None = None,
) -> Fabric:
    """Traffic to another site climbs to the top of its tree, crosses the WAN and comes down there.

    Every two sites have a connection of their own, ``site0/peer0/wan`` from site 0 to the next. Switches are named by
    site, ``site1/leaf0/up``; nodes count through, the first sites having one more where they do not divide.

    Parameters
    ----------
    ports : Ports
        of each node
    switch : Switch
        every switch
    num_nodes : int
        nodes of all sites
    wan_bandwidth : float
        payload of one direction between two sites [B/s]
    wan_latency : float
        one way between two sites [s]; half of what ``ping`` shows
    sites : int
        how many
    within : str
        ``fat_tree`` or ``rail_optimized``
    oversubscription, levels, radix
        of each site's tree, see :class:`~clustersim.topology.tree.Tree`
    rails, pxn
        of each site's rails, see :func:`~clustersim.topology.rail_optimized.rail_optimized`

    Raises
    ------
    BadInput
        when a value is out of range, or the nodes of a site do not fit
    """
    faults = []
    if num_nodes < 1:
        faults.append(Fault(key="nodes", value=num_nodes, rule="must be at least 1", nearest=1))
    if sites < 2:
        faults.append(Fault(key="fabric.sites", value=sites, rule="must be at least 2", nearest=2))
    if not 1 <= wan_bandwidth <= MOST_CAPACITY:
        rule = f"must be from 1 to {MOST_CAPACITY:g} B/s"
        faults.append(Fault(key="fabric.wan_bandwidth", value=wan_bandwidth, rule=rule))
    if not 0 <= wan_latency < float("inf"):
        rule = "must be zero or positive, and finite"
        faults.append(Fault(key="fabric.wan_latency", value=wan_latency, rule=rule, nearest=0))
    if within not in _WITHIN:
        rule = f"must be one of {', '.join(_WITHIN)}"
        faults.append(Fault(key="fabric.within", value=within, rule=rule, nearest=_WITHIN[0]))
    for key, value in (("fabric.rails", rails), ("fabric.pxn", pxn)):
        if value is not None and within == "fat_tree":
            rule = "has no place: fabric.within is fat_tree"
            faults.append(Fault(key=key, value=value, rule=rule))
    if faults:
        raise BadInput(faults)
    small, extra = divmod(num_nodes, sites)
    size = small + (extra > 0)
    if within == "fat_tree":
        site = fat_tree(
            ports=ports, switch=switch, num_nodes=size, oversubscription=oversubscription, levels=levels, radix=radix
        )
    else:
        site = rail_optimized(
            ports=ports,
            switch=switch,
            num_nodes=size,
            oversubscription=oversubscription,
            levels=levels,
            radix=radix,
            rails=rails,
            pxn=pxn is not False,
        )
    tree: Any = site.path
    tiers = tree.tiers
    blocks = port_blocks(ports, num_nodes, hop_latency=switch.latency)
    blocks += [
        replace(block, shape=(sites, *block.shape), label=f"site{{}}/{block.label}")
        for block in site.blocks[2 : 2 + 2 * len(tiers)]
    ]
    blocks.append(
        Block(
            kind="wan",
            shape=(sites, sites - 1),
            capacity=wan_bandwidth,
            latency=wan_latency + switch.latency,
            label="site{}/peer{}/wan",
        )
    )
    first = np.concatenate(([0], np.cumsum([block.count for block in blocks])))
    path = SitesPath(
        starts=tuple(min(i, extra) + i * small for i in range(sites)),
        num_ports=ports.count,
        nodes=tuple(tier.nodes for tier in tiers),
        rails=tuple(tier.rails for tier in tiers),
        groups=tuple(block.shape[1] for block in blocks[2:-1:2]),
        first=tuple(int(row) for row in first),
    )
    notes = () if tiers else site.notes  # with tiers, what crosses the WAN leaves its leaf
    if extra:
        notes += (f"{num_nodes} nodes do not divide over {sites} sites: {extra} of them have one more",)
    return Fabric(ports=ports, blocks=tuple(blocks), path=path, relay_rails=site.relay_rails, notes=notes)


@dataclass(frozen=True, kw_only=True, slots=True)
class SitesPath:
    """Paths between ports: a pair climbs until one group holds both ends, or to the top and over the WAN.

    Parameters
    ----------
    starts : tuple[int, ...]
        first node of each site
    num_ports : int
        ports of a node
    nodes, rails, groups : tuple[int, ...]
        nodes of a group, groups side by side over the same nodes, and groups in one site, of each tier from the leaves
        up
    first : tuple[int, ...]
        first row of the ports' ``tx`` and ``rx``, of each tier's ``up`` and ``down``, and of the WAN
    """

    starts: tuple[int, ...]
    num_ports: int
    nodes: tuple[int, ...]
    rails: tuple[int, ...]
    groups: tuple[int, ...]
    first: tuple[int, ...]

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel, shape (n, 2 · len(nodes) + 3); see :data:`~clustersim.topology.fabric.PortPath`."""
        starts = np.array(self.starts, dtype=np.int64)
        source_site, site = (np.searchsorted(starts, n, side="right") - 1 for n in (source_node, destination_node))
        height = len(self.nodes)
        rows = np.full((len(source_node), 2 * height + 3), -1, dtype=np.int64, order="F")
        rows[:, 0] = self.first[0] + source_node * self.num_ports + source_port
        rows[:, -1] = self.first[1] + destination_node * self.num_ports + destination_port
        tiers = zip(self.nodes, self.rails, self.groups, strict=True)
        for level, (size, rails, count) in enumerate(tiers, start=1):
            source, destination = (
                at * count + (node - starts[at]) // size * rails + port % rails
                for at, node, port in (
                    (source_site, source_node, source_port),
                    (site, destination_node, destination_port),
                )
            )
            apart = source != destination
            rows[:, level] = np.where(apart, self.first[2 * level] + source, -1)
            rows[:, -1 - level] = np.where(apart, self.first[2 * level + 1] + destination, -1)
        peer = (site - source_site - 1) % len(starts)
        across = self.first[2 * height + 2] + source_site * (len(starts) - 1) + peer
        rows[:, height + 1] = np.where(source_site != site, across, -1)
        return rows
