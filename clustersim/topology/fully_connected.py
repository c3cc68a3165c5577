"""Nodes with a link to every other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.link import Link
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.port_blocks import port_blocks
from clustersim.topology.resources import Block

__all__ = ["MOST_NODES", "FullPath", "fully_connected"]

MOST_NODES = 1024
"""Nodes that are still linked pair by pair: a million links."""


def fully_connected(*, ports: Ports, link: Link, num_nodes: int, num_links: int = 1) -> Fabric:
    """Every route crosses one link: ``node3/peer0.out`` leads to the next node, ``node3/peer1.out`` to the one after.

    Parameters
    ----------
    ports : Ports
        of each node; they lead into the node's own router, which has the links
    link : Link
        to each other node: cable and router; its payload is that of the network card
    num_nodes : int
        at most 1,024
    num_links : int
        parallel links between each two nodes

    Raises
    ------
    BadInput
        when a number is out of range
    """
    faults = []
    if not 1 <= num_nodes <= MOST_NODES:
        rule = f"must be from 1 to {MOST_NODES} for a link between each two"
        nearest = min(max(num_nodes, 1), MOST_NODES)
        faults.append(Fault(key="nodes", value=num_nodes, rule=rule, nearest=nearest))
    if num_links < 1:
        faults.append(Fault(key="fabric.num_links", value=num_links, rule="must be at least 1", nearest=1))
    if faults:
        raise BadInput(faults)
    blocks = port_blocks(ports, num_nodes)
    if num_nodes > 1:
        blocks.append(
            Block(
                kind="direct",
                shape=(num_nodes, num_nodes - 1),
                capacity=link.payload_bandwidth * ports.nic.efficiency * num_links,
                latency=link.latency,
                label="node{}/peer{}.out",
                num_links=num_links,
            )
        )
    return Fabric(ports=ports, blocks=tuple(blocks), path=FullPath(num_nodes=num_nodes, num_ports=ports.count))


@dataclass(frozen=True, kw_only=True, slots=True)
class FullPath:
    """Paths between ports over the one link between their nodes.

    Parameters
    ----------
    num_nodes : int
        nodes
    num_ports : int
        ports of a node
    """

    num_nodes: int
    num_ports: int

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel, shape (n, 3); see :data:`~clustersim.topology.fabric.PortPath`."""
        rx = self.num_nodes * self.num_ports
        peer = (destination_node - source_node - 1) % self.num_nodes
        return np.stack(
            [
                source_node * self.num_ports + source_port,
                2 * rx + source_node * (self.num_nodes - 1) + peer,
                rx + destination_node * self.num_ports + destination_port,
            ],
            axis=1,
        )
