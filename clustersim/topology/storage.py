"""A file system that all nodes share, over a network of its own or over the compute fabric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.nic import NIC
from clustersim.topology.node_paths import NodePaths
from clustersim.topology.resources import MOST_CAPACITY, MOST_LATENCY, Block, ResourceTable
from clustersim.topology.topology import LocalPath, Topology
from clustersim.units import Unit

__all__ = ["SharedStorage"]

OVER_COMPUTE = (
    "storage traffic crosses the first network port of its node, and no switch: servers hang beside the nodes"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedStorage:
    """What the servers give all nodes together, and how a node reaches them.

    Parameters
    ----------
    read_bandwidth, write_bandwidth : float
        of all servers together; a server reads and writes at once [B/s]
    latency : float
        of one request, beside the network's [s]
    metadata_latency : float
        of opening a file [s]
    node_read_bandwidth, node_write_bandwidth : float, optional
        what one node's client reaches, whatever its port carries [B/s]; not limited when left out
    capacity_bytes : int, optional
        of the file system [B]; not limited when left out
    nic : NIC, optional
        that each node reaches them through, on a network that carries nothing else
    over : {"own", "compute"}
        which network: one of its own, or the compute fabric, through the first port of each node

    Raises
    ------
    BadInput
        when a number is out of range, or there is a NIC without a network of its own or the reverse
    """

    read_bandwidth: Annotated[float, Unit("B/s")]
    write_bandwidth: Annotated[float, Unit("B/s")]
    latency: Annotated[float, Unit("s")] = 0.0
    metadata_latency: Annotated[float, Unit("s")] = 0.0
    node_read_bandwidth: Annotated[float | None, Unit("B/s")] = None
    node_write_bandwidth: Annotated[float | None, Unit("B/s")] = None
    capacity_bytes: Annotated[int, Unit("B")] | None = None
    nic: NIC | None = None
    over: Literal["own", "compute"] = "own"

    def __post_init__(self) -> None:
        faults = []
        for key in ("read_bandwidth", "write_bandwidth", "node_read_bandwidth", "node_write_bandwidth"):
            value = getattr(self, key)
            if value is not None and not 1 <= value <= MOST_CAPACITY:
                rule = f"must be from 1 to {MOST_CAPACITY:g} B/s"
                nearest = MOST_CAPACITY if value > 1 else 1
                faults.append(Fault(key=f"storage.{key}", value=value, rule=rule, nearest=nearest))
        if self.capacity_bytes is not None and self.capacity_bytes < 1:
            rule = "must be at least 1"
            faults.append(Fault(key="storage.capacity_bytes", value=self.capacity_bytes, rule=rule, nearest=1))
        for key in ("latency", "metadata_latency"):
            value = getattr(self, key)
            if not 0 <= value <= MOST_LATENCY:
                rule = f"must be from 0 to {MOST_LATENCY:g} s"
                faults.append(
                    Fault(key=f"storage.{key}", value=value, rule=rule, nearest=MOST_LATENCY if value > 0 else 0)
                )
        if self.over not in ("own", "compute"):
            rule = "must be a network: own or compute"
            faults.append(Fault(key="storage.over", value=self.over, rule=rule, nearest="own"))
        elif self.over == "own" and self.nic is None:
            rule = "must be given: the network of its own that storage.over names needs one in each node"
            faults.append(Fault(key="storage.nic", value=None, rule=rule))
        elif self.over == "compute" and self.nic is not None:
            rule = "has no place beside storage.over=compute: nodes send through the compute fabric's"
            faults.append(Fault(key="storage.nic", value=self.nic.name, rule=rule))
        if faults:
            raise BadInput(faults)

    def join(self, topology: Topology) -> Topology:
        """The cluster with paths ``fs_read`` and ``fs_write`` between each device's host memory and the servers.

        Raises
        ------
        BadInput
            when storage goes over a compute fabric that is not there
        """
        table = _Table(topology)
        read, write = (
            table.add(Block(kind="file_system", shape=(), capacity=rate, latency=self.latency, label=f"storage/{way}"))
            for way, rate in (("read", self.read_bandwidth), ("write", self.write_bandwidth))
        )
        if self.nic is not None:
            port = {
                way: table.add_each(
                    "storage_nic", f"node{{}}/storage.{way}", self.nic.payload_bandwidth, self.nic.latency
                )
                for way in ("rx", "tx")
            }
        else:
            port = {way: _first_ports(topology, way)[topology.node_of] for way in ("rx", "tx")}
        client = {
            way: [table.add_each("file_system_client", f"node{{}}/storage.{way}", rate)] if rate is not None else []
            for way, rate in (("read", self.node_read_bandwidth), ("write", self.node_write_bandwidth))
        }
        memory = topology.local["dram"].rows[:, 0]
        tiers = {} if self.capacity_bytes is None else {"file_system": self.capacity_bytes}
        return replace(
            topology,
            resources=table.made(),
            local=_joined(
                topology.local,
                {
                    "fs_read": self._path(np.full_like(memory, read), port["rx"], *client["read"], memory),
                    "fs_write": self._path(memory, *client["write"], port["tx"], np.full_like(memory, write)),
                },
            ),
            tier_bytes={**topology.tier_bytes, **tiers},
            notes=topology.notes + ((OVER_COMPUTE,) if self.nic is None else ()),
        )

    def _path(self, *columns: NDArray[np.int64]) -> LocalPath:
        rows = np.stack(columns, axis=1)
        return LocalPath(rows=rows, per_byte=np.ones(rows.shape[1]), per_file=self.metadata_latency)


def _joined(local: Mapping[str, LocalPath], others: Mapping[str, LocalPath]) -> Mapping[str, LocalPath]:
    return local.joined(others) if isinstance(local, NodePaths) else {**local, **others}


class _Table:
    """A topology's resources with some more."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._blocks = list(topology.resources.blocks)
        self._count = len(topology.resources)

    def add(self, block: Block) -> int:
        """Its first row."""
        first = self._count
        self._blocks.append(block)
        self._count += block.count
        return first

    def add_each(self, kind: str, label: str, capacity: float, latency: float = 0.0) -> NDArray[np.int64]:
        """One resource a node: the row of each device's, shape (num_devices,)."""
        shape = (self._topology.num_nodes,)
        first = self.add(Block(kind=kind, shape=shape, capacity=capacity, latency=latency, label=label))
        return first + self._topology.node_of

    def made(self) -> ResourceTable:
        return ResourceTable(self._blocks)


def _first_ports(topology: Topology, way: str) -> NDArray[np.int64]:
    """Row of each node's first network port."""
    try:
        return np.array(
            [topology.resources.find(f"node{node}/nic0.{way}") for node in range(topology.num_nodes)], dtype=np.int64
        )
    except KeyError:
        rule = "needs a compute fabric: the nodes have no network ports"
        raise BadInput([Fault(key="storage.over", value="compute", rule=rule, nearest="own")]) from None
