"""GPUs that have nothing but PCIe: workstations, inference servers, boxes of consumer cards."""

from __future__ import annotations

from typing import Annotated

from clustersim.faults import BadInput, Fault
from clustersim.hardware.gpu import GPU
from clustersim.topology.host import Host
from clustersim.topology.node import Layout, Node, Rows, square
from clustersim.topology.resources import MOST_CAPACITY
from clustersim.units import Unit

__all__ = ["pcie_tree"]


def pcie_tree(
    *,
    gpu: GPU,
    num_gpus: int,
    host: Host,
    p2p: bool = True,
    staged_bandwidth: Annotated[float | None, Unit("B/s")] = None,
) -> Node:
    """A node whose GPUs reach each other over their host's PCIe.

    Peer to peer, a transfer crosses the lanes of both GPUs and, as far as they do not share it, the uplinks of their
    PCIe switches and the link between their sockets. Without peer-to-peer access it crosses the memory of the
    receiver's socket instead, written and read: that row stands in the route twice. The two halves of such a transfer
    wait for each other, so that it may be slower than its lanes.

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
    staged_bandwidth : float, optional
        that a GPU receives without peer-to-peer access [B/s]; as much as its lanes when left out

    Raises
    ------
    BadInput
        when the host's lists do not fit the number of GPUs, or a bandwidth is out of range
    """
    if staged_bandwidth is not None and not 1 <= staged_bandwidth <= MOST_CAPACITY:
        rule = f"must be from 1 to {MOST_CAPACITY:g} B/s"
        raise BadInput([Fault(key="node.staged_bandwidth", value=staged_bandwidth, rule=rule)])
    layout = Layout()
    wiring = host.wire(layout, gpu, num_gpus)
    limit: list[Rows] = [()] * num_gpus
    if staged_bandwidth is not None and not p2p:
        rows = layout.add("staged", "gpu{}/staged.in", num_gpus, capacity=staged_bandwidth)
        limit = [(int(row),) for row in rows]

    def path(a: int, b: int) -> Rows:
        if a == b:
            return ()
        return (*wiring.outward[a][b], *wiring.inward[b][b]) if p2p else (*wiring.staged[a][b], *limit[b])

    return wiring.node(layout, square([[path(a, b) for b in range(num_gpus)] for a in range(num_gpus)]))
