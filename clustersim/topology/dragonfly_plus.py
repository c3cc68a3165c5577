"""A dragonfly+: groups that are fat trees of two levels, their spines linked (Shpiner et al., HiPINEB 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.switch import Switch
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.groups import Groups
from clustersim.topology.port_blocks import port_blocks
from clustersim.topology.resources import Block

__all__ = ["DragonflyPlusPath", "dragonfly_plus"]

_MINIMAL = "dragonfly_plus: traffic takes shortest routes; the detours of adaptive routing are not modelled"


def dragonfly_plus(
    *,
    ports: Ports,
    switch: Switch,
    num_nodes: int,
    leaves_per_group: int | None = None,
    spines_per_group: int | None = None,
    nodes_per_leaf: int | None = None,
    global_links: int | None = None,
    local_links: int = 1,
    groups: int | None = None,
    group_links: int | None = None,
    radix: int | None = None,
) -> Fabric:
    """Minimal routes: up to a spine, across where the destination is in another group, down to its leaf.

    Traffic spreads evenly: ``group0/leaf3/up`` are all links of a leaf to its spines, ``group0/peer4/global`` all links
    to the fifth group after number 0. Left out, half of a switch's ports lead each way.

    Parameters
    ----------
    ports : Ports
        of each node, all on one leaf
    switch : Switch
        every switch
    num_nodes : int
        nodes; they fill group after group
    leaves_per_group, spines_per_group : int, optional
        switches of a group
    nodes_per_leaf : int, optional
        nodes on a leaf
    global_links : int, optional
        ports of a spine to other groups
    local_links : int
        links between each leaf and each spine of a group
    groups : int, optional
        groups that the machine is wired for; those that the nodes fill when left out
    group_links : int, optional
        links between each two groups; as many as fit when left out
    radix : int, optional
        ports of a switch; the switch's own when left out

    Raises
    ------
    BadInput
        when a number is out of range, a switch has too few ports, or the nodes do not fit
    """
    num_ports = switch.radix if radix is None else radix
    endpoints = ports.count * ports.num_links
    half = max(1, num_ports // 2)
    leaves = half if leaves_per_group is None else leaves_per_group
    spines = half if spines_per_group is None else spines_per_group
    p = max(1, half // endpoints) if nodes_per_leaf is None else nodes_per_leaf
    h = half if global_links is None else global_links
    given = {"nodes": num_nodes, "fabric.leaves_per_group": leaves, "fabric.spines_per_group": spines}
    given |= {"fabric.nodes_per_leaf": p, "fabric.global_links": h, "fabric.local_links": local_links}
    faults = [
        Fault(key=key, value=value, rule="must be at least 1", nearest=1) for key, value in given.items() if value < 1
    ]
    if not faults:
        needed = {"a leaf": p * endpoints + spines * local_links, "a spine": leaves * local_links + h}
        most = max(needed, key=needed.__getitem__)
        if needed[most] > num_ports:
            rule = f"must be at least {needed[most]}, the links of {most}"
            faults.append(Fault(key="fabric.radix", value=num_ports, rule=rule, nearest=needed[most]))
        laid = Groups(
            num_nodes=num_nodes,
            nodes_per_group=leaves * p,
            global_ports=spines * h,
            groups=groups,
            group_links=group_links,
        )
        faults += laid.faults()
    if faults:
        raise BadInput(faults)
    nic = ports.nic
    port = min(switch.port_bandwidth, nic.bandwidth) * nic.efficiency
    blocks = port_blocks(ports, num_nodes, hop_latency=switch.latency)
    blocks += [
        Block(
            kind=f"leaf_{way}",
            shape=(laid.used, leaves),
            capacity=port * spines * local_links,
            latency=switch.latency,
            label=f"group{{}}/leaf{{}}/{way}",
            num_links=spines * local_links,
        )
        for way in ("up", "down")
    ]
    if laid.count > 1:
        blocks.append(
            Block(
                kind="global",
                shape=(laid.used, laid.count - 1),
                capacity=port * laid.links,
                latency=switch.latency,
                label="group{}/peer{}/global",
                num_links=laid.links,
            )
        )
    path = DragonflyPlusPath(
        num_nodes=num_nodes,
        num_ports=ports.count,
        nodes_per_leaf=p,
        leaves=leaves,
        groups=laid.count,
        used=laid.used,
    )
    return Fabric(ports=ports, blocks=tuple(blocks), path=path, notes=(_MINIMAL,) if laid.used > 1 else ())


@dataclass(frozen=True, kw_only=True, slots=True)
class DragonflyPlusPath:
    """Paths between ports: up, across, down.

    Parameters
    ----------
    num_nodes, num_ports : int
        nodes, ports of a node
    nodes_per_leaf, leaves : int
        nodes of a leaf, leaves of a group
    groups, used : int
        groups, those that have nodes
    """

    num_nodes: int
    num_ports: int
    nodes_per_leaf: int
    leaves: int
    groups: int
    used: int

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel, shape (n, 5); see :data:`~clustersim.topology.fabric.PortPath`."""
        num_nics, num_leaves = self.num_nodes * self.num_ports, self.used * self.leaves
        source, destination = source_node // self.nodes_per_leaf, destination_node // self.nodes_per_leaf
        source_group, group = source // self.leaves, destination // self.leaves
        peer = (group - source_group - 1) % self.groups
        across = 2 * num_nics + 2 * num_leaves + source_group * (self.groups - 1) + peer
        rows = np.full((len(source_node), 5), -1, dtype=np.int64, order="F")
        rows[:, 0] = source_node * self.num_ports + source_port
        rows[:, 1] = np.where(source != destination, 2 * num_nics + source, -1)
        rows[:, 2] = np.where(source_group != group, across, -1)
        rows[:, 3] = np.where(source != destination, 2 * num_nics + num_leaves + destination, -1)
        rows[:, 4] = num_nics + destination_node * self.num_ports + destination_port
        return rows
