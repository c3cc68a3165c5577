"""A dragonfly: groups of routers, all-to-all inside a group and among groups (Kim et al., ISCA 2008)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.switch import Switch
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.groups import Groups
from clustersim.topology.port_blocks import port_blocks
from clustersim.topology.resources import Block

__all__ = ["DragonflyPath", "dragonfly"]

_MINIMAL = "dragonfly: traffic takes shortest routes; the detours of adaptive routing are not modelled"


def dragonfly(
    *,
    ports: Ports,
    switch: Switch,
    num_nodes: int,
    routers_per_group: int | None = None,
    nodes_per_router: int | None = None,
    global_links: int | None = None,
    local_links: int = 1,
    groups: int | None = None,
    group_links: int | None = None,
    rails: int | None = None,
    radix: int | None = None,
) -> Fabric:
    """Minimal routes: to a router that has a link to the destination's group, across, to the destination's router.

    ``group0/router3/local1`` leads to the second router after number 3, counted round; ``group0/peer4/global0`` is the
    first link, or bundle of links between the same two routers, to the fifth group after number 0. Links between two
    groups start from as many routers as there are links; a route takes one of its own router, else one that ends on
    the destination's router, else they take turns by routers and port.

    Left out, the numbers are those of a balanced dragonfly (Kim et al., section 3.1: a = 2p = 2h, so that radix is
    4h - 1), as far as whole nodes fill a router.

    Parameters
    ----------
    ports : Ports
        of each node
    switch : Switch
        every router
    num_nodes : int
        nodes; they fill group after group
    routers_per_group : int, optional
        a
    nodes_per_router : int, optional
        nodes with ports on one router
    global_links : int, optional
        h, ports of a router to other groups
    local_links : int
        links between each two routers of a group
    groups : int, optional
        groups that the machine is wired for; those that the nodes fill when left out
    group_links : int, optional
        links between each two groups, a multiple of the routers where they are more; as many as fit when left out
    rails : int, optional
        neighbouring routers that share their nodes, port q of a node on that number q modulo this; 1 where a router has
        all ports of its nodes. One for each port when left out, as far as that divides the routers of a group
    radix : int, optional
        ports of a router; the switch's own when left out

    Raises
    ------
    BadInput
        when a number is out of range, a router has too few ports, or the nodes do not fit
    """
    num_ports = switch.radix if radix is None else radix
    balanced = max(1, (num_ports + 1) // 4)
    a = 2 * balanced if routers_per_group is None else routers_per_group
    side = math.gcd(ports.count, max(1, a)) if rails is None else rails
    endpoints = -(-ports.count // max(1, side)) * ports.num_links
    p = max(1, balanced // endpoints) if nodes_per_router is None else nodes_per_router
    h = balanced if global_links is None else global_links
    given = {"nodes": num_nodes, "fabric.routers_per_group": a, "fabric.nodes_per_router": p}
    given |= {"fabric.global_links": h, "fabric.local_links": local_links, "fabric.rails": side}
    faults = [
        Fault(key=key, value=value, rule="must be at least 1", nearest=1) for key, value in given.items() if value < 1
    ]
    if not faults:
        needed = p * endpoints + (a - 1) * local_links + h
        if needed > num_ports:
            rule = f"must be at least {needed}: {p * endpoints} to nodes, {(a - 1) * local_links} local, {h} global"
            faults.append(Fault(key="fabric.radix", value=num_ports, rule=rule, nearest=needed))
        if side > ports.count or a % side:
            legal = math.gcd(ports.count, a)
            rule = f"must be at most the {ports.count} ports of a node and divide the {a} routers of a group"
            faults.append(Fault(key="fabric.rails", value=side, rule=rule, nearest=legal))
        laid = Groups(
            num_nodes=num_nodes,
            nodes_per_group=max(1, a // side) * p,
            global_ports=a * h,
            groups=groups,
            group_links=group_links,
        )
        faults += laid.faults()
        if not faults and group_links is not None and group_links > a and group_links % a:
            rule = f"must be a multiple of the {a} routers of a group, or fewer"
            faults.append(Fault(key="fabric.group_links", value=group_links, rule=rule, nearest=group_links // a * a))
    if faults:
        raise BadInput(faults)
    links = laid.links if laid.links <= a else laid.links // a * a
    path = DragonflyPath(
        num_nodes=num_nodes,
        num_ports=ports.count,
        nodes_per_router=p,
        rails=side,
        routers=a,
        groups=laid.count,
        used=laid.used,
        links=links,
    )
    nic = ports.nic
    port = min(switch.port_bandwidth, nic.bandwidth) * nic.efficiency
    blocks = port_blocks(ports, num_nodes, hop_latency=switch.latency)
    if a > 1:
        blocks.append(
            Block(
                kind="local",
                shape=(laid.used, a, a - 1),
                capacity=port * local_links,
                latency=switch.latency,
                label="group{}/router{}/local{}",
                num_links=local_links,
            )
        )
    if laid.count > 1:
        blocks.append(
            Block(
                kind="global",
                shape=(laid.used, laid.count - 1, path.gateways),
                capacity=port * (links // path.gateways),
                latency=switch.latency,
                label="group{}/peer{}/global{}",
                num_links=links // path.gateways,
            )
        )
    notes = (_MINIMAL,) if side > 1 or num_nodes > p else ()
    return Fabric(ports=ports, blocks=tuple(blocks), path=path, notes=notes)


@dataclass(frozen=True, kw_only=True, slots=True)
class DragonflyPath:
    """Paths between ports: local, global, local.

    Global link q of the links to the k-th group after one's own is number k · links + q of its group. Numbers go round
    the routers, and the two ends of a link have numbers that add up to that of the last: each group looks the same.

    Parameters
    ----------
    num_nodes, num_ports : int
        nodes, ports of a node
    nodes_per_router, rails, routers : int
        nodes of a router, routers that share them, routers of a group
    groups, used : int
        groups, those that have nodes
    links : int
        between each two groups
    """

    num_nodes: int
    num_ports: int
    nodes_per_router: int
    rails: int
    routers: int
    groups: int
    used: int
    links: int

    @property
    def gateways(self) -> int:
        """Routers of a group with links to one other group."""
        return min(self.links, self.routers)

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel, shape (n, 5); see :data:`~clustersim.topology.fabric.PortPath`."""
        a, num_nics = self.routers, self.num_nodes * self.num_ports
        source_group, source = self._router(source_node, source_port)
        group, destination = self._router(destination_node, destination_port)
        away = source_group != group
        leave, enter = destination, destination  # inside a group one local hop leads there
        rows = np.full((len(source_node), 5), -1, dtype=np.int64, order="F")
        if away.any():
            peer = (group - source_group - 1) % self.groups
            link = self._link(peer, source, destination, source_port)
            leave = np.where(away, (peer * self.links + link) % a, destination)
            enter = np.where(away, (self._last - peer * self.links - link) % a, destination)
            first = 2 * num_nics + self.used * a * (a - 1)
            across = (source_group * (self.groups - 1) + peer) * self.gateways + link
            rows[:, 2] = np.where(away, first + across, -1)
        rows[:, 0] = source_node * self.num_ports + source_port
        rows[:, 1] = self._local(source_group, source, leave)
        rows[:, 3] = self._local(group, enter, destination)
        rows[:, 4] = num_nics + destination_node * self.num_ports + destination_port
        return rows

    def _router(self, node: NDArray[np.int64], port: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Group, and number in it, of the router that a port hangs on."""
        group, block = np.divmod(node // self.nodes_per_router, self.routers // self.rails)
        return group, block * self.rails + port % self.rails

    @property
    def _last(self) -> int:
        """Number of the last global link of a group."""
        return (self.groups - 1) * self.links - 1

    def _link(
        self,
        peer: NDArray[np.int64],
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Which of the bundles between two groups a route takes."""
        near = (source - peer * self.links) % self.routers
        far = (self._last - peer * self.links - destination) % self.routers
        turn = (near + far + port) % max(1, self.gateways)
        return np.where(near < self.gateways, near, np.where(far < self.gateways, far, turn))

    def _local(self, group: NDArray[np.int64], source: NDArray[np.int64], to: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of the hops inside a group, -1 where they stay on one router."""
        a = self.routers
        row = 2 * self.num_nodes * self.num_ports + (group * a + source) * (a - 1) + (to - source - 1) % a
        return np.where(source == to, -1, row)
