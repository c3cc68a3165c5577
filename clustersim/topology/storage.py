"""A file system that all nodes share, over a network of its own or over the compute fabric."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.nic import NIC
from clustersim.topology.resources import Block, ResourceTable
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
    nic: NIC | None = None
    over: Literal["own", "compute"] = "own"

    def __post_init__(self) -> None:
        faults = []
        for key in ("read_bandwidth", "write_bandwidth"):
            value = getattr(self, key)
            if not 1 <= value < float("inf"):
                rule = "must be at least 1 B/s and finite"
                faults.append(Fault(key=f"storage.{key}", value=value, rule=rule, nearest=1))
        if not 0 <= self.latency < float("inf"):
            rule = "must be zero or positive, and finite"
            faults.append(Fault(key="storage.latency", value=self.latency, rule=rule, nearest=0))
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
        first = len(topology.resources)
        servers = [
            Block(kind="file_system", shape=(), capacity=rate, latency=self.latency, label=f"storage/{way}")
            for way, rate in (("read", self.read_bandwidth), ("write", self.write_bandwidth))
        ]
        ports: list[Block] = []
        if self.nic is not None:
            ports = [
                Block(
                    kind="storage_nic",
                    shape=(topology.num_nodes,),
                    capacity=self.nic.payload_bandwidth,
                    latency=self.nic.latency,
                    label=f"node{{}}/storage.{way}",
                )
                for way in ("rx", "tx")
            ]
            rows = first + 2 + np.arange(2 * topology.num_nodes, dtype=np.int64).reshape(2, -1)
        else:
            rows = np.stack([_first_ports(topology, way) for way in ("rx", "tx")])
        port = rows[:, topology.node_of]
        memory = topology.local["dram"].rows[:, 0]
        server = np.full_like(memory, first)
        return replace(
            topology,
            resources=ResourceTable([*topology.resources.blocks, *servers, *ports]),
            local={
                **topology.local,
                "fs_read": LocalPath(rows=np.stack([server, port[0], memory], axis=1), per_byte=np.ones(3)),
                "fs_write": LocalPath(rows=np.stack([memory, port[1], server + 1], axis=1), per_byte=np.ones(3)),
            },
            notes=topology.notes + ((OVER_COMPUTE,) if self.nic is None else ()),
        )


def _first_ports(topology: Topology, way: str) -> NDArray[np.int64]:
    """Row of each node's first network port."""
    try:
        return np.array(
            [topology.resources.find(f"node{node}/nic0.{way}") for node in range(topology.num_nodes)], dtype=np.int64
        )
    except KeyError:
        rule = "needs a compute fabric: the nodes have no network ports"
        raise BadInput([Fault(key="storage.over", value="compute", rule=rule, nearest="own")]) from None
