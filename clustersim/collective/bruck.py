"""Bruck: all-to-all and all-gather in log2 n steps, each with a member twice as far round the group."""

from __future__ import annotations

import numpy as np

from clustersim.collective.channels import point_to_point_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import handed_over, memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic

__all__ = ["bruck"]

KINDS = ("all_to_all", "all_gather")


def bruck(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of Bruck's algorithms, for small messages between many members.

    In step k = 0 … ceil(log2 n) - 1 each member sends to the one 2^k further (all-to-all) or before it (all-gather).

    - All-to-all: every block whose way round the group, j - i mod n, has bit k set. A block takes as many hops as that
      number has bits, so a member sends S/2·log2 n for a power of two, against (n-1)/n·S of a direct one.
    - All-gather: all blocks it has, at most those still missing: 2^k, and (n-1)/n·S over all steps.

    No step begins before the one before has ended. Blocks of S/n are rounded up to whole bytes. In memory each member
    also turns its buffer into the order of the ways round and back again (all-gather: back only), once read and once
    written.

    Parameters
    ----------
    kind : {"all_to_all", "all_gather"}
    nbytes : int
        payload S [B]: the buffer before it is cut, the gathered one for all_gather
    shape : GroupShape
        members follow one another by their positions, wherever they sit

    Raises
    ------
    BadInput
        when ``kind`` is another or ``nbytes`` is negative

    References
    ----------
    Bruck et al., "Efficient algorithms for all-to-all communications in multiport message-passing systems", IEEE
    Transactions on Parallel and Distributed Systems 8 (1997).
    """
    require_call("bruck", kind, nbytes, KINDS)
    n, block = shape.num_members, -(-nbytes // shape.num_members)
    member, ways = np.arange(n, dtype=np.int64), np.arange(n, dtype=np.int64)
    steps = []
    for k in range((n - 1).bit_length()):
        reach = 1 << k
        if kind == "all_to_all":
            num_blocks, partner = int((ways >> k & 1).sum()), (member + reach) % n
        else:
            num_blocks, partner = min(reach, n - reach), (member - reach) % n
        nbytes_each = np.full(n, num_blocks * block, dtype=np.int64)
        steps.append(Phase(source=member, destination=partner, nbytes=nbytes_each, num_steps=1))
    phases = tuple(steps)
    turned = (2 if kind == "all_to_all" else 1) * 2 * n * block if phases else 0
    return Traffic(
        algorithm="bruck",
        phases=phases,
        pipelined=False,
        memory_nbytes=memory_traffic(kind, nbytes, shape, phases) + handed_over(phases, n) + turned,
        num_sms=point_to_point_sms(Layout.of(shape).num_nodes, 1),
        own_nbytes=block,
    )
