"""What a collective puts on the wire: flows between members, the steps it takes, and what it asks of the GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Algorithm", "GroupShape", "Phase", "Traffic"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupShape:
    """How the members of a process group sit on nodes.

    Parameters
    ----------
    node : NDArray[int64], shape (n,)
        for each member, in group order, the position of the first member on the same node
    rings : NDArray[int64], shape (num_rings, n), optional
        rings inside the nodes, each through all members of every node: ``rings[r, i]`` is the position of the member
        that ring r visits after member i, itself where a node has no other. On a mesh of direct links they are the
        orders that use many links at once, :func:`clustersim.topology.rings.rings`; a collective spreads its bytes
        evenly over them. None: any one order is as good, as behind a switch
    multicast : bool
        whether the switches inside a node add up and copy what they pass on (NVLink SHARP of the third NVSwitch)
    in_network : bool
        whether the switches between nodes do (SHARP)
    """

    node: NDArray[np.int64]
    rings: NDArray[np.int64] | None = None
    multicast: bool = False
    in_network: bool = False

    def __post_init__(self) -> None:
        if self.rings is not None and not self._go_round(self.rings):
            raise ValueError("rings: each must visit every member of a node once, return, and never leave the node")

    def _go_round(self, rings: NDArray[np.int64]) -> bool:
        n = len(self.node)
        if rings.ndim != 2 or rings.shape[1] != n or not rings.size or not 0 <= rings.min() <= rings.max() < n:
            return False
        if (self.node[rings] != self.node).any():
            return False
        first, count = np.unique(self.node, return_counts=True)
        at = np.broadcast_to(first, (len(rings), len(first)))
        for step in range(1, int(count.max()) + 1):
            at = np.take_along_axis(rings, at, axis=1)
            if ((at == first) != (step % count == 0)).any():
                return False
        return True

    @property
    def num_members(self) -> int:
        """Number of ranks in the group."""
        return len(self.node)

    @property
    def nodes(self) -> list[NDArray[np.int64]]:
        """Member positions by node, in group order."""
        return [np.flatnonzero(self.node == first) for first in np.unique(self.node)]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Phase:
    """Flows that run together.

    Parameters
    ----------
    source, destination : NDArray[int64], shape (num_flows,)
        positions in the group
    nbytes : NDArray[int64], shape (num_flows,)
        what each flow carries over the whole collective [B]
    num_steps : int
        serial steps; each adds the longest latency among the flows' routes
    message_nbytes : float, optional
        of flows along closed rings, in which a member passes a message on when all of it has come: its size, 0 for
        chains whose chunks are as small as one likes [B]. The steps of a ring, over all of its phases, are the messages
        that each of its edges carries. None: the flows wait for no others of their phase
    tree : NDArray[int64], shape (num_flows,), optional
        flows of one number are one stream that switches on the way add up (towards a member) or copy (from one): a
        resource that several of them cross carries the bytes of the largest once. None: each flow goes by itself
    """

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    nbytes: NDArray[np.int64]
    num_steps: int
    message_nbytes: float | None = None
    tree: NDArray[np.int64] | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Traffic:
    """What one collective does to the cluster.

    Parameters
    ----------
    algorithm : str
        name, for the trace
    phases : tuple[Phase, ...]
    pipelined : bool
        True: chunks of all phases overlap, the busiest resource sets the time; False: phases follow one another
    returns : bool
        True: chunks go through the phases, and back through them from the last to the first, as in the all-reduce of a
        tree; in each phase the first half of the steps and of the flows is the way there
    memory_nbytes : NDArray[int64], shape (n,)
        bytes each member reads plus writes in its own HBM [B]
    num_sms : int
        SMs it takes on each member while it runs
    num_flows : int
        parallel flows on its busiest link: its weight when links are shared
    own_nbytes : int
        what each member copies from its own send buffer to its own receive buffer, its own block, on no link [B]
    """

    algorithm: str
    phases: tuple[Phase, ...]
    pipelined: bool
    memory_nbytes: NDArray[np.int64]
    num_sms: int = 0
    num_flows: int = 1
    own_nbytes: int = 0
    returns: bool = False


Algorithm = Callable[[str, int, GroupShape], Traffic]
"""(kind, nbytes, shape) -> Traffic. ``nbytes`` is the payload of one rank as nccl-tests counts it: the full buffer
for all_reduce, broadcast and send_recv, the gathered output for all_gather, the input for reduce_scatter."""
