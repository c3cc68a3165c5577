"""PCIe cards in pairs, joined by NVLink bridges: A100 PCIe, H100 PCIe and NVL, A30, RTX workstation cards."""

from __future__ import annotations

from clustersim.faults import BadInput, Fault
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.topology.host import Host
from clustersim.topology.node import Layout, Node, Rows, square

__all__ = ["nvlink_pairs"]


def nvlink_pairs(*, gpu: GPU, num_gpus: int, link: Link, num_links: int, host: Host) -> Node:
    """GPUs 0 and 1, 2 and 3 … reach each other over a bridge, ``gpu{}/nvlink``; all others over their host's PCIe.

    Parameters
    ----------
    gpu : GPU
        card
    num_gpus : int
        GPUs in the node, an even number
    link : Link
        one NVLink
    num_links : int
        links of a bridge
    host : Host
        sockets, PCIe switches, lanes

    Raises
    ------
    BadInput
        when the number of GPUs is odd, or the host's lists do not fit it
    """
    if num_gpus < 2 or num_gpus % 2:
        rule = "must be even: every GPU has a partner"
        raise BadInput([Fault(key="node.num_gpus", value=num_gpus, rule=rule, nearest=max(2, num_gpus + 1))])
    layout = Layout()
    bridge = layout.add(
        "nvlink",
        "gpu{}/nvlink",
        num_gpus,
        capacity=num_links * link.payload_bandwidth,
        latency=link.latency,
        num_links=num_links,
    )
    wiring = host.wire(layout, gpu, num_gpus)

    def path(a: int, b: int) -> Rows:
        if a == b:
            return ()
        return (int(bridge[a]),) if a // 2 == b // 2 else (*wiring.outward[a][b], *wiring.inward[b][b])

    return wiring.node(layout, square([[path(a, b) for b in range(num_gpus)] for a in range(num_gpus)]))
