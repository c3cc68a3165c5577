"""GPUs that have nothing but PCIe: workstations, inference servers, boxes of consumer cards."""

from __future__ import annotations

from clustersim.hardware.gpu import GPU
from clustersim.topology.host import Host
from clustersim.topology.node import Layout, Node, Rows, square

__all__ = ["pcie_tree"]


def pcie_tree(*, gpu: GPU, num_gpus: int, host: Host, p2p: bool = True) -> Node:
    """A node whose GPUs reach each other over their host's PCIe.

    Peer to peer, a transfer crosses the lanes of both GPUs and, as far as they do not share it, the uplinks of their
    PCIe switches and the link between their sockets. Without peer-to-peer access it crosses the memory of the
    receiver's socket instead, written and read: that row stands in the route twice.

    Parameters
    ----------
    gpu : GPU
        card
    num_gpus : int
        GPUs in the node
    host : Host
        sockets, PCIe switches, lanes
    p2p : bool
        whether the driver lets GPUs read each other's memory; NVIDIA's does not for the RTX 4090

    Raises
    ------
    BadInput
        when the host's lists do not fit the number of GPUs
    """
    layout = Layout()
    wiring = host.wire(layout, gpu, num_gpus)
    paths: list[list[Rows]] = [
        [
            () if a == b else (*wiring.outward[a][b], *wiring.inward[b][b]) if p2p else wiring.staged[a][b]
            for b in range(num_gpus)
        ]
        for a in range(num_gpus)
    ]
    return wiring.node(layout, square(paths))
