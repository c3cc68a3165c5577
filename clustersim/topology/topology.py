"""A topology: devices, directed resources between them, and a route function over arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.hardware.protocol import Protocol
from clustersim.hardware.residual import Residual
from clustersim.topology.in_network import InNetwork
from clustersim.topology.resources import MOST_CAPACITY, ResourceTable

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["LocalPath", "Router", "Topology"]

Router = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""(source devices (n,), destination devices (n,)) -> resource rows (n, hops) in order of travel, padded with -1. A
row that stands in a route twice is crossed twice: host memory that is written and read."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LocalPath:
    """What one device's own traffic of one kind crosses: its HBM, its PCIe lanes, its host's DRAM, its drives.

    Parameters
    ----------
    rows : NDArray[int64], shape (num_devices, hops)
        resources crossed, padded with -1
    per_byte : NDArray[float64], shape (hops,)
        demand on each per byte moved: 1 for a link or a memory, nanoseconds for a drive
    latency : float
        before the first byte, beside the resources' own latency [s]
    bandwidth : float
        most that one op reaches, whatever its resources carry: what is asked for at once and how long an answer takes
        [B/s]
    per_file : float
        for each file that an op opens [s]
    """

    rows: NDArray[np.int64]
    per_byte: NDArray[np.float64]
    latency: float = 0.0
    bandwidth: float = float("inf")
    per_file: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Topology:
    """A cluster as the engine sees it. Devices are numbered node by node.

    Parameters
    ----------
    name : str
        of the card it came from
    gpus : tuple[GPU, ...]
        the distinct device cards
    gpu_of : NDArray[int64], shape (num_devices,)
        index into ``gpus``
    node_of : NDArray[int64], shape (num_devices,)
        a node is a scale-up domain: GPUs that reach each other without the scale-out fabric, as one board or one NVL72
        rack; collectives tell scale-up from scale-out by it
    cpus : tuple[CPU, ...]
        the distinct host sockets
    cpu_of : NDArray[int64], shape (num_devices,)
        index into ``cpus`` of the socket that a device hangs on
    resources : ResourceTable
    router : Router
        closed form for the regular families
    local : Mapping[str, LocalPath]
        ``hbm``, ``h2d``, ``d2h``, ``dram``, ``cores``; ``nvme_read``, ``nvme_write`` where the node has drives,
        ``fs_read``, ``fs_write`` where there is a shared file system. Names that end in ``.spread`` and ``.far`` lead
        to the memory of all sockets or of another one, ``socket.spread`` and ``socket.far`` are what such host work
        crosses between sockets, and those that end in ``.direct`` lead to the GPU's own memory. The unit is bytes, but
        core-nanoseconds for ``cores``
    tier_bytes : Mapping[str, int]
        capacity of one node's tiers beside the GPUs' own memory [B]: ``host``, ``nvme``; ``file_system`` is the site's
    multicast : NDArray[bool], shape (num_devices,), optional
        whether the switches between a device and the others of its node add up and copy what they pass (NVLink SHARP);
        no device's when left out
    in_network : InNetwork, optional
        how what the switches between nodes add up travels; None where they do not
    protocols : Mapping[str, tuple[Protocol, ...]]
        how the communication library sends, by name of the algorithm; each collective takes the fastest. Those of an
        algorithm without an entry cost a launch and what the links say: the textbook's latency and bandwidth
    residuals : Mapping[str, Residual]
        how far measured collectives ``inside`` nodes and ``between`` them are from what these protocols say; without
        an entry where nobody measured any
    notes : tuple[str, ...]
        what was assumed, for the result's warnings
    sources : Mapping[str, str]
        the parts' sources by dotted name
    """

    name: str
    gpus: tuple[GPU, ...]
    gpu_of: NDArray[np.int64]
    node_of: NDArray[np.int64]
    cpus: tuple[CPU, ...]
    cpu_of: NDArray[np.int64]
    resources: ResourceTable
    router: Router
    local: Mapping[str, LocalPath]
    tier_bytes: Mapping[str, int] = field(default_factory=dict)
    multicast: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    in_network: InNetwork | None = None
    protocols: Mapping[str, tuple[Protocol, ...]] = field(default_factory=dict)
    residuals: Mapping[str, Residual] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not len(self.multicast):
            object.__setattr__(self, "multicast", np.zeros(self.num_devices, dtype=np.bool_))

    @classmethod
    def from_networkx(
        cls, graph: nx.Graph[Any], *, gpu: GPU, cpu: CPU, host_link: Link | None = None, name: str = "graph"
    ) -> Topology:
        """A topology from a graph of one's own; parameters and errors are those of
        :func:`clustersim.topology.graph.from_networkx`.

        Vertices have a ``role``, ``"gpu"`` or ``"switch"``, edges a ``bandwidth`` of one direction [B/s] and a
        ``latency`` [s].
        """
        from clustersim.topology.graph import from_networkx

        return from_networkx(graph, gpu=gpu, cpu=cpu, host_link=host_link, name=name)

    def to_networkx(self) -> nx.DiGraph[Any]:
        """The links that routes cross, as a graph; see :func:`clustersim.topology.drawing.to_networkx`."""
        from clustersim.topology.drawing import to_networkx

        return to_networkx(self)

    def __repr__(self) -> str:
        """One line: name, devices, nodes, resources."""
        cards = ", ".join(gpu.name for gpu in self.gpus)
        return (
            f"Topology({self.name}: {self.num_devices:,} x {cards} in {self.num_nodes:,} nodes, "
            f"{len(self.resources):,} resources)"
        )

    @property
    def num_devices(self) -> int:
        """Number of GPUs."""
        return len(self.gpu_of)

    @property
    def num_nodes(self) -> int:
        """Number of nodes: scale-up domains."""
        return int(self.node_of.max()) + 1 if len(self.node_of) else 0

    def route(self, source: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.int64]:
        """Resources between pairs of devices.

        Parameters
        ----------
        source, destination : NDArray[int64], shape (n,)
            device numbers, pairwise different

        Returns
        -------
        NDArray[int64], shape (n, hops)
            resource rows in order of travel, padded with -1
        """
        return self.router(np.asarray(source, dtype=np.int64), np.asarray(destination, dtype=np.int64))

    def with_capacity(self, factors: Mapping[str, float]) -> Topology:
        """The same cluster with some resources slower or faster.

        Parameters
        ----------
        factors : Mapping[str, float]
            resource name -> factor on its capacity; 0.5 halves it

        Raises
        ------
        KeyError
            when a name is not a resource of this topology
        ValueError
            when a factor is not positive, for a link that carries nothing has no schedule, or makes a capacity of
            more than 10^18 B/s
        """
        if not factors:
            return self
        for name, factor in factors.items():
            if not 0 < factor < float("inf"):
                raise ValueError(f"{name}: factor {factor} must be positive and finite")
        rows = np.array([self.resources.find(name) for name in factors], dtype=np.int64)
        scaled = np.rint(self.resources.capacity[rows] * np.array(list(factors.values())))
        for name, capacity in zip(factors, scaled.tolist(), strict=True):
            if capacity > MOST_CAPACITY:
                raise ValueError(f"{name}: factor {factors[name]:g} makes more than {MOST_CAPACITY:g} B/s of it")
        changed = np.maximum(1, scaled).astype(np.int64)
        return replace(self, resources=self.resources.with_capacity(rows, changed))

    def without_links(self, names: Iterable[str]) -> Topology:
        """The same cluster after links, ports or switches have failed.

        A resource that stands for m parallel links keeps (m - k)/m of its capacity when it is named k times. Give all
        that has failed in one call: a second call counts from what the first has left.

        A network port of a node that is lost whole, or the leaf that it hangs on, sends its traffic over the next port:
        on fabrics that relay between rails over the next rail's, at both ends; on others over the next port of its own
        node, which it reaches through the host. With hashed ECMP the flows of a lost link are hashed over the others.

        Parameters
        ----------
        names : Iterable[str]
            a resource, one direction of a link: ``leaf0/up``, ``node3/gpu1/nvlink.up``; both directions of a network
            port: ``node3/nic1``; a switch of a tree: ``leaf0``, one of those called ``pod0`` or ``core0``; or
            ``rail3``, all of a rail's leaves

        Raises
        ------
        BadInput
            when a name is none of these, or no way would be left; a slow link is then the nearest thing
        """
        from clustersim.topology.failure import without_links

        names = tuple(names)
        return without_links(self, names) if names else self

    def with_devices(self, devices: Mapping[int, GPU]) -> Topology:
        """The same cluster with other cards in some slots, on the same links.

        Parameters
        ----------
        devices : Mapping[int, GPU]
            device number -> its card

        Raises
        ------
        BadInput
            when there is no such device
        """
        last = self.num_devices - 1
        faults = [
            Fault(key="devices", value=device, rule=f"must be from 0 to {last}", nearest=min(max(device, 0), last))
            for device in devices
            if not 0 <= device <= last
        ]
        if faults:
            raise BadInput(faults)
        gpus = list(self.gpus)
        for gpu in devices.values():
            if gpu not in gpus:
                gpus.append(gpu)
        index = np.array(list(devices), dtype=np.int64)
        gpu_of = self.gpu_of.copy()
        gpu_of[index] = [gpus.index(gpu) for gpu in devices.values()]
        hbm = self.local["hbm"].rows[index, 0]
        bandwidth = np.array([round(gpu.memory_bandwidth) for gpu in devices.values()], dtype=np.int64)
        return replace(self, gpus=tuple(gpus), gpu_of=gpu_of, resources=self.resources.with_capacity(hbm, bandwidth))
