"""GPUs on NVSwitches: any pair at full rate, each GPU limited by its own links only (DGX-2, DGX A100, HGX H100 …)."""

from __future__ import annotations

import numpy as np

from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.hardware.switch import Switch
from clustersim.topology.host import Host
from clustersim.topology.node import Layout, Node

__all__ = ["nvswitch"]


def nvswitch(*, gpu: GPU, num_gpus: int, link: Link, num_links: int, switch: Switch, host: Host) -> Node:
    """A node whose GPUs all hang on one non-blocking layer of NVSwitches.

    Traffic is spread over all links of a GPU, so they are one resource per direction: ``gpu{}/nvlink.up`` to the
    switches, ``gpu{}/nvlink.down`` from them.

    Parameters
    ----------
    gpu : GPU
        card
    num_gpus : int
        GPUs in the NVLink domain
    link : Link
        one NVLink
    num_links : int
        links of one GPU
    switch : Switch
        the switch chip, for its latency and for whether it adds up and copies
    host : Host
        sockets, PCIe, drives

    Raises
    ------
    BadInput
        when the host's lists do not fit the number of GPUs
    """
    layout = Layout()
    capacity = num_links * link.payload_bandwidth
    up = layout.add(
        "nvlink",
        "gpu{}/nvlink.up",
        num_gpus,
        capacity=capacity,
        latency=link.latency + switch.latency,
        num_links=num_links,
    )
    down = layout.add(
        "nvlink", "gpu{}/nvlink.down", num_gpus, capacity=capacity, latency=link.latency, num_links=num_links
    )
    wiring = host.wire(layout, gpu, num_gpus)
    between = np.full((num_gpus, num_gpus, 2), -1, dtype=np.int64)
    between[..., 0], between[..., 1] = up[:, None], down[None, :]
    between[np.arange(num_gpus), np.arange(num_gpus)] = -1
    return wiring.node(layout, between, multicast=switch.multicast)
