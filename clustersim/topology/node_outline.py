"""What is inside a node, told from outside: which GPU hangs on what, by its routes and the names of its resources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.cluster_router import ClusterRouter, MixedRouter
from clustersim.topology.resources import Block
from clustersim.topology.topology import Topology

__all__ = ["DirectLink", "NodeOutline", "Tie", "node_outlines"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tie:
    """Equal links.

    Parameters
    ----------
    kind : str
        of the resource
    capacity : float
        of one direction, all ``num_links`` together [B/s]
    num_links : int
    """

    kind: str
    capacity: float
    num_links: int = 1

    @classmethod
    def of(cls, block: Block) -> Tie:
        """That of a block."""
        return cls(kind=block.kind, capacity=block.capacity, num_links=block.num_links)


@dataclass(frozen=True, kw_only=True, slots=True)
class DirectLink:
    """A link between two GPUs of a node, ``a`` < ``b``."""

    a: int
    b: int
    tie: Tie


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeOutline:
    """Equal nodes of a cluster.

    Parameters
    ----------
    first, count : int
        number of the first one, and how many follow one another
    gpus : tuple[str, ...]
        name of the card in each slot
    gpu_memory : Tie
        of one GPU
    switched : Tie, optional
        of one GPU to the switches between all of them
    direct : tuple[DirectLink, ...]
        between two GPUs each
    cpu : str
        card of a socket
    dram : Tie, optional
        memory of one socket
    socket_of : tuple[int, ...]
        socket of each GPU; empty where a GPU has no way to its host
    host : Tie, optional
        from a GPU towards its socket
    pcie_switch_of : tuple[int, ...]
        PCIe switch of each GPU, empty where there are none
    uplink : Tie, optional
        from a PCIe switch to its socket
    between_sockets : Tie, optional
        out of one socket to the others, where that is limited
    port_beside : tuple[int, ...]
        for each network port the GPU that it hangs beside; empty where there is no network
    port : Tie, optional
        one network port
    drive : Tie, optional
        the node's drives
    """

    first: int
    count: int
    gpus: tuple[str, ...]
    gpu_memory: Tie
    cpu: str
    switched: Tie | None = None
    direct: tuple[DirectLink, ...] = ()
    dram: Tie | None = None
    socket_of: tuple[int, ...] = ()
    host: Tie | None = None
    pcie_switch_of: tuple[int, ...] = ()
    uplink: Tie | None = None
    between_sockets: Tie | None = None
    port_beside: tuple[int, ...] = ()
    port: Tie | None = None
    drive: Tie | None = None

    @property
    def num_gpus(self) -> int:
        """GPUs of one node."""
        return len(self.gpus)


def node_outlines(topology: Topology) -> tuple[NodeOutline, ...]:
    """One for each kind of node, in their order; none where resources name no nodes, as in a graph of one's own."""
    memories = [block for block in topology.resources.blocks if block.label == "node{}/gpu{}/hbm"]
    return tuple(_outline(topology, block) for block in memories)


def _outline(topology: Topology, memory: Block) -> NodeOutline:
    node, count = memory.start, memory.shape[0]
    devices = np.flatnonzero(topology.node_of == node)
    blocks = {
        block.label.removeprefix("node{}/"): block
        for block in topology.resources.blocks
        if block.label.startswith("node{}/") and block.start == node
    }
    down = [_names(topology, topology.local["h2d"].rows[d]) for d in devices] if "h2d" in topology.local else []
    host = next((block for label, block in blocks.items() if label in _HOST_LABELS), None)
    switched, direct = _between(topology, devices, host.kind if host else "")
    switches = [_number(names, r"pcie(\d+)/down") for names in down]
    tie = {name: Tie.of(blocks[label]) for name, label in _LABELS.items() if label in blocks}
    return NodeOutline(
        first=node,
        count=count,
        gpus=tuple(topology.gpus[k].name for k in topology.gpu_of[devices]),
        gpu_memory=Tie.of(memory),
        cpu=topology.cpus[int(topology.cpu_of[devices[0]])].name,
        switched=switched,
        direct=direct,
        dram=tie.get("dram"),
        socket_of=tuple(_number(names, r"cpu(\d+)/dram") or 0 for names in down),
        host=Tie.of(host) if host else None,
        pcie_switch_of=tuple(s for s in switches if s is not None),
        uplink=tie.get("uplink"),
        between_sockets=tie.get("between_sockets"),
        port_beside=_ports(topology, int(devices[0]), len(devices)),
        port=tie.get("port"),
        drive=tie.get("drive"),
    )


_HOST_LABELS = tuple(f"gpu{{}}/{kind}.down" for kind in ("pcie", "c2c", "infinity_fabric"))
"""Links from a host to its GPUs, by the kinds that :class:`clustersim.topology.host.Host` has."""

_LABELS: Mapping[str, str] = {
    "dram": "cpu{}/dram",
    "uplink": "pcie{}/up",
    "between_sockets": "cpu{}/socket.out",
    "port": "nic{}.tx",
    "drive": "nvme",
}


def _names(topology: Topology, rows: Sequence[int]) -> list[str]:
    return [topology.resources.name(int(row)).partition("/")[2] for row in rows if row >= 0]


def _number(names: Sequence[str], pattern: str) -> int | None:
    found = [int(match[1]) for name in names if (match := re.fullmatch(pattern, name))]
    return found[0] if found else None


def _between(topology: Topology, devices: NDArray[np.int64], host: str) -> tuple[Tie | None, tuple[DirectLink, ...]]:
    """Ways between GPUs that cross no host: over one switch, or over a link of their own."""
    pairs = np.array(list(permutations(range(len(devices)), 2)), dtype=np.int64).reshape(-1, 2)
    if not len(pairs):
        return None, ()
    switched: Tie | None = None
    direct: dict[tuple[int, int], Tie] = {}
    routes = topology.route(devices[pairs[:, 0]], devices[pairs[:, 1]])
    for (a, b), route in zip(pairs.tolist(), routes, strict=True):
        rows = route[route >= 0]
        blocks = [topology.resources.block(int(row)) for row in rows]
        if len(rows) == 1:
            direct.setdefault((min(a, b), max(a, b)), Tie.of(blocks[0]))
        elif len(rows) == 2 and blocks[0].kind == blocks[1].kind != host and blocks[0].label.endswith(".up"):
            switched = Tie.of(blocks[0])
    return switched, tuple(DirectLink(a=a, b=b, tie=tie) for (a, b), tie in sorted(direct.items()))


def _ports(topology: Topology, device: int, num_gpus: int) -> tuple[int, ...]:
    """For each port of the node of a first device, the GPU that it hangs beside."""
    router = topology.router
    ways = router.ways if isinstance(router, MixedRouter) else router
    if not isinstance(ways, ClusterRouter) or ways.crossing is None:
        return ()
    slot = int(router.slot_of[device]) if isinstance(router, MixedRouter) else 0
    home = ways.crossing.home[int(ways.crossing.kind_of[slot])]
    return tuple(int(s) - slot for s in home if 0 <= s - slot < num_gpus)
