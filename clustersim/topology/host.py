"""The host side of a node: sockets, their cores and memory, PCIe or C2C down to the GPUs, drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from clustersim.faults import BadInput, Fault
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.hardware.storage import Drive
from clustersim.topology.host_paths import local_paths
from clustersim.topology.host_rows import lay_out
from clustersim.topology.node import Layout, Rows
from clustersim.topology.wiring import Wiring
from clustersim.units import Unit

__all__ = ["Host"]


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
        socket that each GPU hangs on
    process_socket_of : tuple[int, ...]
        socket whose cores and memory the process of each GPU has; that of the GPU when left out. Launchers that deal
        out cores in order do not ask where a GPU is: DeepSpeed's ``--bind_cores_to_rank`` (``utils/numa.py``)
    pcie_switch_of : tuple[int, ...]
        PCIe switch of each GPU; empty when GPUs hang on root ports of their own
    uplink : Link, optional
        from a PCIe switch to its socket; that of one GPU when left out
    root_complex : Link, optional
        of one socket: what all traffic of its root ports shares, with memory and between them; not limited when left
        out
    socket_link : Link, optional
        one link between two sockets; not limited when left out
    num_socket_links : int
        parallel links between each two sockets
    sockets_per_system : int, optional
        sockets under one operating system, whose memories one process can use; all of the node when left out
    memory_bytes : int, optional
        DRAM of one socket where it is not the CPU's own number [B]
    drive : Drive, optional
        the node's data drives, striped as one array
    num_drives : int
        drives in it
    drive_uplink : Link, optional
        of a PCIe switch that all drives hang on; not limited when left out
    request_bytes : int
        in which the I/O library reads and writes [B]; DeepSpeed's ``aio.block_size``
    queue_depth : int
        requests that it has in flight; DeepSpeed's ``aio.queue_depth``

    Raises
    ------
    BadInput
        with every number out of range, every part without its count and every count without its part
    """

    cpu: CPU
    num_sockets: int
    link: Link
    link_kind: Literal["pcie", "c2c", "infinity_fabric"] = "pcie"
    socket_of: tuple[int, ...] = ()
    process_socket_of: tuple[int, ...] = ()
    pcie_switch_of: tuple[int, ...] = ()
    uplink: Link | None = None
    root_complex: Link | None = None
    socket_link: Link | None = None
    num_socket_links: int = 1
    sockets_per_system: int | None = None
    memory_bytes: Annotated[int, Unit("B")] | None = None
    drive: Drive | None = None
    num_drives: int = 0
    drive_uplink: Link | None = None
    request_bytes: Annotated[int, Unit("B")] = 1 << 20
    queue_depth: int = 8

    def __post_init__(self) -> None:
        faults = [
            Fault(key=f"host.{key}", value=value, rule="must be at least 1", nearest=1)
            for key in (
                "num_sockets",
                "num_socket_links",
                "sockets_per_system",
                "memory_bytes",
                "request_bytes",
                "queue_depth",
            )
            if (value := getattr(self, key)) is not None and value < 1
        ]
        if self.drive is not None and self.num_drives < 1:
            faults.append(Fault(key="host.num_drives", value=self.num_drives, rule="must be at least 1", nearest=1))
        if self.drive is None and self.num_drives:
            faults.append(Fault(key="host.num_drives", value=self.num_drives, rule="needs a host.drive to count"))
        if self.drive is None and self.drive_uplink is not None:
            rule = "needs a host.drive behind it"
            faults.append(Fault(key="host.drive_uplink", value=self.drive_uplink.name, rule=rule))
        together = self.sockets_per_system
        if together is not None and together >= 1 and self.num_sockets % together:
            rule = f"must divide the node's {self.num_sockets} sockets"
            nearest = max(n for n in range(1, together + 1) if self.num_sockets % n == 0)
            faults.append(Fault(key="host.sockets_per_system", value=together, rule=rule, nearest=nearest))
        for key in ("socket_of", "process_socket_of"):
            if any(not 0 <= s < self.num_sockets for s in getattr(self, key)):
                rule = f"must be sockets from 0 to {self.num_sockets - 1}"
                faults.append(
                    Fault(key=f"host.{key}", value=getattr(self, key), rule=rule, nearest=self.num_sockets - 1)
                )
        if any(s < 0 for s in self.pcie_switch_of):
            rule = "must be switches from 0 up"
            faults.append(Fault(key="host.pcie_switch_of", value=self.pcie_switch_of, rule=rule, nearest=0))
        if faults:
            raise BadInput(faults)

    def sockets(self, num_gpus: int) -> tuple[int, ...]:
        """Socket of each of ``num_gpus`` GPUs."""
        return self.socket_of or tuple(gpu * self.num_sockets // num_gpus for gpu in range(num_gpus))

    def system_of(self, socket: int) -> range:
        """Sockets under the same operating system as ``socket``, itself among them."""
        together = self.sockets_per_system or self.num_sockets
        first = socket // together * together
        return range(first, first + together)

    def wire(self, layout: Layout, gpu: GPU, num_gpus: int) -> Wiring:
        """Lay out the host's resources for ``num_gpus`` GPUs.

        Raises
        ------
        BadInput
            when ``socket_of``, ``process_socket_of`` or ``pcie_switch_of`` is not of that length, a switch hangs on two
            sockets, or a process is under another operating system than its GPU
        """
        self._check(num_gpus)
        sockets, switches = self.sockets(num_gpus), self.pcie_switch_of
        rows = lay_out(self, layout, gpu, sockets, self.process_socket_of or sockets)

        def between_sockets(a: int, b: int) -> Rows:
            return rows.socket_out[sockets[a]] if sockets[a] != sockets[b] else ()

        def cross(a: int, b: int) -> Rows:
            """From beside GPU a to beside GPU b: nothing under one PCIe switch."""
            if a == b or (switches and switches[a] == switches[b]):
                return ()
            root = (*rows.root_up[sockets[a]], *rows.root_down[sockets[b]]) if sockets[a] == sockets[b] else ()
            return rows.leave[a] + (between_sockets(a, b) or root) + rows.enter[b]

        gpus = range(num_gpus)
        memory = [rows.dram[s] for s in sockets]
        return Wiring(
            gpu=gpu,
            cpu=self.cpu,
            outward=[[(rows.up[a], *cross(a, b)) for b in gpus] for a in gpus],
            inward=[[(*cross(a, b), rows.down[b]) for b in gpus] for a in gpus],
            staged=[
                [
                    (
                        rows.up[a],
                        *rows.leave[a],
                        *between_sockets(a, b),
                        memory[b],
                        memory[b],
                        *rows.enter[b],
                        rows.down[b],
                    )
                    for b in gpus
                ]
                for a in gpus
            ],
            local=local_paths(self, rows),
            tier_bytes=self._tier_bytes(),
        )

    def _check(self, num_gpus: int) -> None:
        faults = []
        for key in ("socket_of", "process_socket_of", "pcie_switch_of"):
            given = getattr(self, key)
            if given and len(given) != num_gpus:
                rule = f"must have one entry for each of the node's {num_gpus} GPUs"
                faults.append(Fault(key=f"host.{key}", value=given, rule=rule, nearest=num_gpus))
        if not faults and self.pcie_switch_of:
            homes = set(zip(self.pcie_switch_of, self.sockets(num_gpus), strict=True))
            if len(homes) != len(set(self.pcie_switch_of)):
                rule = "puts a switch on two sockets: the GPUs of one switch must share a socket"
                faults.append(Fault(key="host.pcie_switch_of", value=self.pcie_switch_of, rule=rule))
        if not faults and self.process_socket_of:
            pairs = zip(self.sockets(num_gpus), self.process_socket_of, strict=True)
            if any(process not in self.system_of(socket) for socket, process in pairs):
                rule = "must be sockets under the operating system of the GPU's own"
                faults.append(Fault(key="host.process_socket_of", value=self.process_socket_of, rule=rule))
        if faults:
            raise BadInput(faults)

    def _tier_bytes(self) -> dict[str, int]:
        tiers = {"host": (self.memory_bytes or self.cpu.memory_bytes) * self.num_sockets}
        if self.drive is not None:
            tiers["nvme"] = self.drive.capacity_bytes * self.num_drives
        return tiers
