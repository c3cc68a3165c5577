"""Superchips: GPUs whose host is a CPU of their own behind NVLink-C2C (GH200, quad GH200, GB200 NVL72)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from clustersim.faults import BadInput, Fault
from clustersim.hardware.link import Link
from clustersim.hardware.storage import Drive
from clustersim.hardware.superchip import Superchip
from clustersim.hardware.switch import Switch
from clustersim.topology.host import Host
from clustersim.topology.mesh import nvlink_mesh
from clustersim.topology.node import Layout, Node
from clustersim.topology.nvswitch import nvswitch
from clustersim.units import Unit

__all__ = ["superchip"]


def superchip(
    *,
    superchip: Superchip,
    num_superchips: int,
    link: Link | None = None,
    num_links: int | Sequence[Sequence[int]] = 0,
    switch: Switch | None = None,
    cpu_link: Link | None = None,
    superchips_per_tray: int | None = None,
    memory_bytes: Annotated[int, Unit("B")] | None = None,
    drive: Drive | None = None,
    num_drives: int = 0,
) -> Node:
    """A node of superchips; each CPU is a socket, and each GPU reaches it over its own C2C link.

    A node is one NVLink domain, not one tray: the 36 superchips of an NVL72 are one node, since collectives tell
    scale-up from scale-out by the node. Its host memory and drives are those of all its trays.

    Parameters
    ----------
    superchip : Superchip
        GPU, CPU and the link between them
    num_superchips : int
        in the node
    link : Link, optional
        one NVLink; not needed for a single GPU
    num_links : int or Sequence[Sequence[int]]
        with a switch: links of one GPU to it; without: links between each pair of GPUs, as a matrix
    switch : Switch, optional
        NVSwitch, for its latency
    cpu_link : Link, optional
        between the CPUs of each two superchips of a tray; not limited when left out
    superchips_per_tray : int, optional
        superchips under one operating system; all of the node when left out
    memory_bytes : int, optional
        DRAM of one CPU where it is not the card's own number [B]
    drive : Drive, optional
        data drives
    num_drives : int
        in the node

    Raises
    ------
    BadInput
        when switch, link and number of links do not go together or do not fit the GPUs
    """
    num_gpus = num_superchips * superchip.num_gpus
    host = Host(
        cpu=superchip.cpu,
        num_sockets=num_superchips,
        link=superchip.link,
        link_kind="c2c",
        socket_link=cpu_link,
        sockets_per_system=superchips_per_tray,
        memory_bytes=memory_bytes,
        drive=drive,
        num_drives=num_drives,
    )
    gpu = superchip.gpu
    if switch is not None and link is not None and isinstance(num_links, int) and num_links > 0:
        return nvswitch(gpu=gpu, num_gpus=num_gpus, link=link, num_links=num_links, switch=switch, host=host)
    if switch is None and link is not None and not isinstance(num_links, int) and len(num_links) == num_gpus:
        return nvlink_mesh(gpu=gpu, num_links=num_links, link=link, host=host)
    if switch is None and link is None and num_links == 0 and num_gpus == 1:
        layout = Layout()
        return host.wire(layout, gpu, 1).node(layout, np.full((1, 1, 0), -1, dtype=np.int64))
    rule = (
        f"do not join {num_gpus} GPUs: give a switch, a link and the links of one GPU to it; or a link and a matrix of "
        "links between each two; or none of these for a single GPU"
    )
    given = {"switch": switch and switch.name, "link": link and link.name, "num_links": num_links}
    raise BadInput([Fault(key="node", value=given, rule=rule)])
