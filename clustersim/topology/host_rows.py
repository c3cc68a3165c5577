"""The resources of a host, laid out in its node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.topology.node import Layout, Rows

if TYPE_CHECKING:
    from clustersim.topology.host import Host

__all__ = ["NANOSECONDS", "HostRows", "lay_out"]

NANOSECONDS = 1e9
"""Capacity of one drive, and of one core: nanoseconds of service a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HostRows:
    """Rows of a host's resources, counted in its node; a way over nothing that is limited is empty.

    Parameters
    ----------
    socket_of : tuple[int, ...]
        socket that each GPU hangs on
    process_socket_of : tuple[int, ...]
        socket whose cores and memory the process of each GPU has
    hbm, up, down : tuple[int, ...]
        memory of each GPU, and its lanes towards the host and back
    leave, enter : tuple[Rows, ...]
        from each GPU's lanes to its socket and back: over its PCIe switch
    dram, cores : tuple[int, ...]
        of each socket
    root_up, root_down : tuple[Rows, ...]
        through each socket's root complex, towards memory and back
    socket_out : tuple[Rows, ...]
        out of each socket to the others
    drive : int, optional
        the array
    drive_up, drive_down : Rows
        between it and the sockets
    """

    socket_of: tuple[int, ...]
    process_socket_of: tuple[int, ...]
    hbm: tuple[int, ...]
    up: tuple[int, ...]
    down: tuple[int, ...]
    leave: tuple[Rows, ...]
    enter: tuple[Rows, ...]
    dram: tuple[int, ...]
    cores: tuple[int, ...]
    root_up: tuple[Rows, ...]
    root_down: tuple[Rows, ...]
    socket_out: tuple[Rows, ...]
    drive: int | None
    drive_up: Rows
    drive_down: Rows


def lay_out(
    host: Host, layout: Layout, gpu: GPU, socket_of: tuple[int, ...], process_socket_of: tuple[int, ...]
) -> HostRows:
    """Add the resources of ``host`` to ``layout``, for GPUs on these sockets with processes on those."""
    num_gpus, num_sockets, cpu = len(socket_of), host.num_sockets, host.cpu
    lanes = [
        _rows(layout, host.link_kind, f"gpu{{}}/{host.link_kind}.{way}", num_gpus, host.link, towards=way)
        for way in ("up", "down")
    ]
    switches = host.pcie_switch_of
    num_switches = max(switches, default=-1) + 1
    uplinks = [
        _rows(layout, "pcie_uplink", f"pcie{{}}/{way}", num_switches, host.uplink or host.link, towards=way)
        if switches
        else ()
        for way in ("up", "down")
    ]
    leave, enter = (tuple((rows[s],) if switches else () for s in (switches or socket_of)) for rows in uplinks)
    root = host.root_complex and replace(host.root_complex, latency=host.root_complex.latency / 2)  # peers cross both
    roots = [
        _each(_rows(layout, "root_complex", f"cpu{{}}/root.{way}", num_sockets, root, towards=way))
        if root
        else ((),) * num_sockets
        for way in ("up", "down")
    ]
    num_links = host.num_socket_links * (len(host.system_of(0)) - 1)
    out: tuple[Rows, ...] = ((),) * num_sockets
    if host.socket_link is not None and num_links:
        out = _each(_rows(layout, "socket", "cpu{}/socket.out", num_sockets, host.socket_link, num_links=num_links))
    dram = layout.add("dram", "cpu{}/dram", num_sockets, capacity=cpu.streaming_bandwidth)
    cores = layout.add("cores", "cpu{}/cores", num_sockets, capacity=NANOSECONDS * cpu.num_cores)
    hbm = layout.add("hbm", "gpu{}/hbm", num_gpus, capacity=gpu.memory_bandwidth)
    drive = None
    if host.drive is not None:
        drive = int(layout.add("drive", "nvme", capacity=NANOSECONDS * host.num_drives, num_links=host.num_drives))
    behind = [
        _rows(layout, "nvme_uplink", f"nvme/{way}", None, host.drive_uplink, towards=way) if host.drive_uplink else ()
        for way in ("up", "down")
    ]
    return HostRows(
        socket_of=socket_of,
        process_socket_of=process_socket_of,
        hbm=tuple(hbm.tolist()),
        up=lanes[0],
        down=lanes[1],
        leave=leave,
        enter=enter,
        dram=tuple(dram.tolist()),
        cores=tuple(cores.tolist()),
        root_up=roots[0],
        root_down=roots[1],
        socket_out=out,
        drive=drive,
        drive_up=behind[0],
        drive_down=behind[1],
    )


def _rows(
    layout: Layout, kind: str, label: str, count: int | None, link: Link, *, towards: str = "down", num_links: int = 1
) -> Rows:
    """Lay out ``count`` resources, or one without a number, of some links each, towards the host or away from it."""
    one = link.return_bandwidth if towards == "up" else link.payload_bandwidth
    uneven = link.return_bandwidth != link.payload_bandwidth
    shape = () if count is None else (count,)
    rows = layout.add(
        kind, label, *shape, capacity=one * num_links, latency=link.latency, num_links=num_links, uneven=uneven
    )
    return tuple(rows.reshape(-1).tolist())


def _each(rows: Rows) -> tuple[Rows, ...]:
    return tuple((row,) for row in rows)
