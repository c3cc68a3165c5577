"""What joins nodes: network ports, who uses which, and paths between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.nic import NIC
from clustersim.topology.resources import Block

__all__ = ["Fabric", "PortPath", "Ports"]

PortPath = Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]]
"""(source nodes, source ports, destination nodes, destination ports), each (n,), nodes pairwise different ->
resource rows (n, hops) in order of travel, -1 where a pair needs no hop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """Network ports of one node.

    A GPU with several ports of its own stripes over them: they are one port of several links here.

    Parameters
    ----------
    nic : NIC
        one link of one port
    of_gpu : tuple[int, ...]
        port that each GPU sends and receives through
    num_links : int
        links of a port
    """

    nic: NIC
    of_gpu: tuple[int, ...]
    num_links: int = 1

    @property
    def count(self) -> int:
        """Number of ports."""
        return max(self.of_gpu) + 1

    @classmethod
    def spread(cls, *, nic: NIC, nics_per_node: int, num_gpus: int, nic_of: tuple[int, ...] = ()) -> Ports:
        """Give the NICs of a node to its GPUs.

        Parameters
        ----------
        nic : NIC
            each of them
        nics_per_node : int
            how many; more than there are GPUs make each GPU several, the fewer are shared by neighbours
        num_gpus : int
            GPUs of a node
        nic_of : tuple[int, ...]
            port of each GPU where it is not the one in order

        Raises
        ------
        BadInput
            when neither number divides the other, or ``nic_of`` does not give each GPU one of the ports
        """
        if nics_per_node < 1 or (num_gpus % nics_per_node and nics_per_node % num_gpus):
            legal = [n for n in range(1, num_gpus) if num_gpus % n == 0]
            legal += [num_gpus * k for k in range(1, max(1, nics_per_node) // num_gpus + 2)]
            rule = f"must divide the node's {num_gpus} GPUs or be a multiple of them"
            nearest = min(legal, key=lambda n: abs(n - nics_per_node))
            raise BadInput([Fault(key="nics_per_node", value=nics_per_node, rule=rule, nearest=nearest)])
        count = min(nics_per_node, num_gpus)
        of_gpu = nic_of or tuple(gpu * count // num_gpus for gpu in range(num_gpus))
        if len(of_gpu) != num_gpus or set(of_gpu) != set(range(count)):
            rule = f"must give each of {num_gpus} GPUs one of the ports 0 to {count - 1}, and leave none unused"
            raise BadInput([Fault(key="fabric.nic_of", value=list(nic_of), rule=rule)])
        return cls(nic=nic, of_gpu=of_gpu, num_links=nics_per_node // count)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Fabric:
    """A scale-out fabric; its resources count from 0.

    Parameters
    ----------
    ports : Ports
        of each node
    blocks : tuple[Block, ...]
        labels in full: ``"node{}/nic{}.tx"``
    path : PortPath
        between ports of different nodes
    relay_rails : int
        where not 0, traffic to another rail (port number modulo this) first goes, inside its own node, to the GPU that
        sends through the port that its destination receives through
    reducing : PortPath, optional
        the same paths with the reduction engines of the switches on the way; None where the switches do not reduce
    reduction_slots : int
        trees that one of these switches works for at once
    notes : tuple[str, ...]
        what was assumed, or asked for without effect
    """

    ports: Ports
    blocks: tuple[Block, ...]
    path: PortPath
    relay_rails: int = 0
    reducing: PortPath | None = None
    reduction_slots: int = 0
    notes: tuple[str, ...] = ()
