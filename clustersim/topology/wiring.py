"""What a host has laid out for a node's builder: the ways out of its GPUs and back, and the GPUs' own paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.topology.node import Layout, Node, Rows, square
from clustersim.topology.topology import LocalPath

__all__ = ["Wiring"]


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
