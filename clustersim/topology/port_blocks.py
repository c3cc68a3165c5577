"""The network ports of all nodes as resources."""

from __future__ import annotations

from clustersim.topology.fabric import Ports
from clustersim.topology.resources import Block

__all__ = ["port_blocks"]


def port_blocks(ports: Ports, num_nodes: int, *, hop_latency: float = 0.0) -> list[Block]:
    """What leaves and what enters the nodes: the first two blocks of a fabric.

    Parameters
    ----------
    ports : Ports
        of each node
    num_nodes : int
        nodes
    hop_latency : float
        of what a port leads to: the first switch of every route [s]

    Returns
    -------
    list[Block]
        ``tx`` and ``rx``, each of shape (num_nodes, ports)
    """
    return [
        Block(
            kind="nic",
            shape=(num_nodes, ports.count),
            capacity=ports.nic.payload_bandwidth * ports.num_links,
            latency=ports.nic.latency + latency,
            label=f"node{{}}/nic{{}}.{way}",
            num_links=ports.num_links,
        )
        for way, latency in (("tx", hop_latency), ("rx", 0.0))
    ]
