"""The host side of a node: sockets, their memory, PCIe or C2C down to the GPUs, drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.hardware.storage import Drive
from clustersim.topology.node import Layout, Node, Rows, pad, square
from clustersim.topology.topology import LocalPath

__all__ = ["Host", "Wiring"]

NANOSECONDS = 1e9
"""Capacity of one drive: nanoseconds of service a second."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """Sockets of one node and what hangs on them.

    Parameters
    ----------
    cpu : CPU
        one socket; a superchip's own CPU counts as one
    num_sockets : int
        GPUs spread over them in order, as evenly as possible, unless ``socket_of`` says otherwise
    link : Link
        from a GPU towards its host: to its PCIe switch, its root port, or its CPU over C2C
    link_kind : {"pcie", "c2c", "infinity_fabric"}
        what that link is, for the resources' names
    socket_of : tuple[int, ...]
        socket of each GPU
    pcie_switch_of : tuple[int, ...]
        PCIe switch of each GPU; empty when GPUs hang on root ports of their own
    uplink : Link, optional
        from a PCIe switch to its socket; that of one GPU when left out
    root_complex : Link, optional
        of one socket: what all traffic between its root ports shares, one way; not limited when left out
    socket_link : Link, optional
        out of one socket to the others; not limited when left out
    drive : Drive, optional
        the node's data drives, striped as one array
    num_drives : int
        drives in it
    """

    cpu: CPU
    num_sockets: int
    link: Link
    link_kind: Literal["pcie", "c2c", "infinity_fabric"] = "pcie"
    socket_of: tuple[int, ...] = ()
    pcie_switch_of: tuple[int, ...] = ()
    uplink: Link | None = None
    root_complex: Link | None = None
    socket_link: Link | None = None
    drive: Drive | None = None
    num_drives: int = 0

    def __post_init__(self) -> None:
        faults = []
        if self.num_sockets < 1:
            faults.append(Fault(key="host.num_sockets", value=self.num_sockets, rule="must be at least 1", nearest=1))
        if self.drive is not None and self.num_drives < 1:
            faults.append(Fault(key="host.num_drives", value=self.num_drives, rule="must be at least 1", nearest=1))
        if self.drive is None and self.num_drives:
            faults.append(
                Fault(key="host.num_drives", value=self.num_drives, rule="needs a host.drive to count", nearest=0)
            )
        wrong = [s for s in self.socket_of if not 0 <= s < self.num_sockets]
        if wrong:
            rule = f"must be sockets from 0 to {self.num_sockets - 1}"
            faults.append(Fault(key="host.socket_of", value=self.socket_of, rule=rule, nearest=self.num_sockets - 1))
        if any(s < 0 for s in self.pcie_switch_of):
            rule = "must be switches from 0 up"
            faults.append(Fault(key="host.pcie_switch_of", value=self.pcie_switch_of, rule=rule, nearest=0))
        if faults:
            raise BadInput(faults)

    def sockets(self, num_gpus: int) -> tuple[int, ...]:
        """Socket of each of ``num_gpus`` GPUs."""
        return self.socket_of or tuple(gpu * self.num_sockets // num_gpus for gpu in range(num_gpus))

    def wire(self, layout: Layout, gpu: GPU, num_gpus: int) -> Wiring:
        """Lay out the host's resources for ``num_gpus`` GPUs.

        Raises
        ------
        BadInput
            when ``socket_of`` or ``pcie_switch_of`` is not of that length, or a switch hangs on two sockets
        """
        self._check(num_gpus)
        sockets, switches = self.sockets(num_gpus), self.pcie_switch_of
        kind, link = self.link_kind, self.link
        up, down = (
            layout.add(kind, f"gpu{{}}/{kind}.{way}", num_gpus, capacity=link.payload_bandwidth, latency=link.latency)
            for way in ("up", "down")
        )
        uplink = self.uplink or link
        num_switches = max(switches, default=-1) + 1
        switch_up, switch_down = (
            layout.add(
                "pcie_uplink",
                f"pcie{{}}/{way}",
                num_switches,
                capacity=uplink.payload_bandwidth,
                latency=uplink.latency,
            )
            if switches
            else np.empty(0, dtype=np.int64)
            for way in ("up", "down")
        )
        root = _per_socket(layout, "root_complex", "cpu{}/root", self.root_complex, self.num_sockets)
        out = _per_socket(layout, "socket", "cpu{}/socket.out", self.socket_link, self.num_sockets)
        dram = layout.add(
            "dram", "cpu{}/dram", self.num_sockets, capacity=self.cpu.memory_bandwidth * self.cpu.memory_efficiency
        )
        hbm = layout.add("hbm", "gpu{}/hbm", num_gpus, capacity=gpu.memory_bandwidth)
        leave = [(int(switch_up[s]),) if switches else () for s in (switches or sockets)]
        enter = [(int(switch_down[s]),) if switches else () for s in (switches or sockets)]

        def between_sockets(a: int, b: int) -> Rows:
            return out[sockets[a]] if sockets[a] != sockets[b] else ()

        def cross(a: int, b: int) -> Rows:
            """From beside GPU a to beside GPU b: nothing under one PCIe switch."""
            if a == b or (switches and switches[a] == switches[b]):
                return ()
            over = between_sockets(a, b) if sockets[a] != sockets[b] else root[sockets[a]]
            return leave[a] + over + enter[b]

        gpus = range(num_gpus)
        memory = [int(dram[s]) for s in sockets]
        drive = self._drive(layout)
        local = {
            "hbm": LocalPath(rows=hbm[:, None], per_byte=np.ones(1)),
            "dram": LocalPath(rows=pad([(m,) for m in memory]), per_byte=np.ones(1)),
            "h2d": _plain([(memory[g], *enter[g], int(down[g])) for g in gpus]),
            "d2h": _plain([(int(up[g]), *leave[g], memory[g]) for g in gpus]),
        }
        if self.drive is not None and drive is not None:
            for way, rate in (("read", self.drive.read_bandwidth), ("write", self.drive.write_bandwidth)):
                local[f"nvme_{way}"] = LocalPath(
                    rows=pad([(drive, m) for m in memory]),
                    per_byte=np.array([NANOSECONDS / rate, 1.0]),
                    latency=self.drive.latency,
                )
        return Wiring(
            gpu=gpu,
            cpu=self.cpu,
            outward=[[(int(up[a]), *cross(a, b)) for b in gpus] for a in gpus],
            inward=[[(*cross(a, b), int(down[b])) for b in gpus] for a in gpus],
            staged=[
                [
                    (int(up[a]), *leave[a], *between_sockets(a, b), memory[b], memory[b], *enter[b], int(down[b]))
                    for b in gpus
                ]
                for a in gpus
            ],
            local=local,
            tier_bytes=self._tier_bytes(),
        )

    def _check(self, num_gpus: int) -> None:
        faults = []
        for key in ("socket_of", "pcie_switch_of"):
            given = getattr(self, key)
            if given and len(given) != num_gpus:
                rule = f"must have one entry for each of the node's {num_gpus} GPUs"
                faults.append(Fault(key=f"host.{key}", value=given, rule=rule, nearest=num_gpus))
        if not faults and self.pcie_switch_of:
            homes = set(zip(self.pcie_switch_of, self.sockets(num_gpus), strict=True))
            if len(homes) != len(set(self.pcie_switch_of)):
                rule = "puts a switch on two sockets: the GPUs of one switch must share a socket"
                faults.append(Fault(key="host.pcie_switch_of", value=self.pcie_switch_of, rule=rule))
        if faults:
            raise BadInput(faults)

    def _drive(self, layout: Layout) -> int | None:
        if self.drive is None:
            return None
        return int(layout.add("drive", "nvme", capacity=NANOSECONDS * self.num_drives, num_links=self.num_drives))

    def _tier_bytes(self) -> dict[str, int]:
        tiers = {"host": self.cpu.memory_bytes * self.num_sockets}
        if self.drive is not None:
            tiers["nvme"] = self.drive.capacity_bytes * self.num_drives
        return tiers


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Wiring:
    """The rows that a host laid out.

    Parameters
    ----------
    gpu, cpu : GPU, CPU
        cards of the node's devices and sockets
    outward : list[list[Rows]]
        [a][b]: from GPU a over its host link to a network port beside GPU b
    inward : list[list[Rows]]
        [a][b]: from a network port beside GPU a to GPU b
    staged : list[list[Rows]]
        [a][b]: from GPU a to GPU b through a buffer in the memory of b's socket, written once and read once
    local : dict[str, LocalPath]
        see :class:`~clustersim.topology.node.Node`
    tier_bytes : dict[str, int]
        [B]
    """

    gpu: GPU
    cpu: CPU
    outward: list[list[Rows]]
    inward: list[list[Rows]]
    staged: list[list[Rows]]
    local: dict[str, LocalPath]
    tier_bytes: dict[str, int]

    def node(
        self, layout: Layout, between: NDArray[np.int64], notes: tuple[str, ...] = (), *, multicast: bool = False
    ) -> Node:
        """The node, given the paths between its GPUs and whether the switches on them add up and copy."""
        num_gpus = len(between)
        return Node(
            gpus=(self.gpu,),
            gpu_of=np.zeros(num_gpus, dtype=np.int64),
            cpus=(self.cpu,),
            cpu_of=np.zeros(num_gpus, dtype=np.int64),
            blocks=tuple(layout.blocks),
            between=between,
            outward=square(self.outward),
            inward=square(self.inward),
            local=self.local,
            tier_bytes=self.tier_bytes,
            notes=notes,
            multicast=multicast,
        )


def _per_socket(layout: Layout, kind: str, label: str, link: Link | None, num_sockets: int) -> list[Rows]:
    """The hop over each socket's ``link``; none where it is not limited."""
    if link is None:
        return [()] * num_sockets
    rows = layout.add(kind, label, num_sockets, capacity=link.payload_bandwidth, latency=link.latency)
    return [(int(row),) for row in rows]


def _plain(paths: list[Rows]) -> LocalPath:
    """A path on which each byte asks one byte of every resource."""
    rows = pad(paths)
    return LocalPath(rows=rows, per_byte=np.ones(rows.shape[1]))
