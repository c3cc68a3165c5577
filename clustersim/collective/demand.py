"""What flows ask of the members' own parts: bytes in HBM, and the weight of a collective on its busiest link."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import GroupShape, Phase

__all__ = ["flows_on_busiest_link", "handed_over", "memory_traffic"]

# kind -> ((buffers, blocks) of the root, of the others) that a member reads or writes; a block is 1/n of a buffer
_BUFFERS = {
    "all_reduce": ((2, 0), (2, 0)),
    "all_to_all": ((2, 0), (2, 0)),
    "all_gather": ((1, 1), (1, 1)),
    "reduce_scatter": ((1, 1), (1, 1)),
    "reduce": ((2, 0), (1, 0)),
    "broadcast": ((1, 0), (1, 0)),
    "send_recv": ((1, 0), (1, 0)),
    "gather": ((1, 1), (0, 1)),
    "scatter": ((1, 1), (0, 1)),
}


def memory_traffic(kind: str, nbytes: int, shape: GroupShape, phases: Sequence[Phase]) -> NDArray[np.int64]:
    """Bytes that each member reads plus writes in its HBM.

    A member reads its send buffer once and writes its receive buffer once. Every byte it receives first lands in a
    staging buffer: written by the sender, read by the receiver (to reduce it, keep it, pass it on). A byte for
    another node is staged on the sender too: written by the kernel, read by the NIC::

        bytes = buffers + 2 · received + 2 · sent to another node

    What switches inside a node add up is staged where it comes from instead: each sender writes it, the switch reads
    it, and the sum arrives in registers. A stream counts once for each member that it leaves or reaches.

    For a ring all-reduce on one node this is 2·S + 2 · 2(n-1)/n·S. It holds for NCCL's Simple protocol with neither
    user-buffer registration nor caching of the staging buffers in L2 (assumed), so it is the upper end.

    Parameters
    ----------
    kind : str
    nbytes : int
        payload as :data:`clustersim.collective.traffic.Algorithm` counts it [B]
    shape : GroupShape
    phases : Sequence[Phase]
        all flows of the collective; without any nothing is moved

    Returns
    -------
    NDArray[int64], shape (n,)
        [B]
    """
    n = shape.num_members
    total = np.zeros(n, dtype=np.int64)
    if not phases:
        return total
    block = -(-nbytes // n)
    (root_buffers, root_blocks), (buffers, blocks) = _BUFFERS[kind]
    total[0] = root_buffers * nbytes + root_blocks * block
    total[1:] = buffers * nbytes + blocks * block
    for phase in phases:
        away = shape.node[phase.source] != shape.node[phase.destination]
        staged = np.where(_added_up(phase) & ~away, phase.source, phase.destination)
        total += 2 * _sums(staged, phase, n)
        total += 2 * _sums(phase.source, phase, n, away)
    return total


def handed_over(phases: Sequence[Phase], n: int) -> NDArray[np.int64]:
    """Bytes that steps of which each ends before the next begins pass on through each member's HBM.

    What all but the last bring is written for the next to read: 2 · received.

    Parameters
    ----------
    phases : Sequence[Phase]
        in order
    n : int
        members

    Returns
    -------
    NDArray[int64], shape (n,)
        [B]
    """
    total = np.zeros(n, dtype=np.int64)
    for phase in phases[:-1]:
        total += 2 * _sums(phase.destination, phase, n)
    return total


def flows_on_busiest_link(phases: Sequence[Phase]) -> int:
    """Most flows that leave or reach one member within one phase, a stream once; at least 1.

    Channels are not counted: they multiply the flows of every collective alike.
    """
    ends = [end[_once(end, phase)] for phase in phases for end in (phase.source, phase.destination)]
    return max((int(np.bincount(end).max()) for end in ends if len(end)), default=1)


def _added_up(phase: Phase) -> NDArray[np.bool_]:
    """Which flows belong to a stream from several members, shape (num_flows,)."""
    if phase.tree is None or not len(phase.tree):
        return np.zeros(len(phase.source), dtype=bool)
    _, first, stream = np.unique(phase.tree, return_index=True, return_inverse=True)
    several = np.zeros(len(first), dtype=bool)
    np.logical_or.at(several, stream, phase.source != phase.source[first][stream])
    added: NDArray[np.bool_] = several[stream]
    return added


def _once(end: NDArray[np.int64], phase: Phase) -> NDArray[np.int64]:
    """Flows, of those of one stream that share an ``end`` only the first."""
    if phase.tree is None:
        return np.arange(len(end))
    return np.unique(np.stack([phase.tree, end]), axis=1, return_index=True)[1]


def _sums(end: NDArray[np.int64], phase: Phase, n: int, where: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Bytes by member at that ``end``; bincount adds doubles, which is exact below 2^53 B."""
    flows = _once(end, phase)
    if where is not None:
        flows = flows[where[flows]]
    return np.bincount(end[flows], weights=phase.nbytes[flows], minlength=n).astype(np.int64)
