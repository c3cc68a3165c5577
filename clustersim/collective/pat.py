"""PAT: a binomial tree from every member at once, in log2 n steps; for groups of a member a node."""

from __future__ import annotations

import numpy as np

from clustersim.collective.channels import collective_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["pat"]

KINDS = ("all_gather", "reduce_scatter")


def pat(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of parallel aggregated trees, NCCL 2.23.

    **Bytes.** Each member's block of S/n goes down a binomial tree of which it is the root: first half the group away,
    then a quarter, at last to the next member. In the step over 2^k places a member sends, in one message, the blocks
    of all trees in which it is to pass one on: ceil((n - 2^k) / 2^(k+1)). So little goes far and most goes to the
    neighbour, the other way about than in Bruck's all-gather, with the same (n-1)/n·S sent by each. Reduce-scatter
    goes up the trees.

    **Steps.** ceil(log2 n), chunks of which follow one another through the trees. NCCL has a bounded buffer for what
    it aggregates; with more than fits it sends fewer blocks at once and takes more steps, up to n-1. Not modelled: for
    large S the latency here is too short.

    **Rounding.** Blocks are rounded up to whole bytes.

    Parameters
    ----------
    kind : {"all_gather", "reduce_scatter"}
    nbytes : int
        payload S [B]
    shape : GroupShape
        one member a node

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, or two members share a node, for which NCCL has no PAT
        (``src/graph/tuning.cc``, ``ncclPatEnable``)

    References
    ----------
    Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", arXiv:2506.20252 (2025).
    """
    require_call("pat", kind, nbytes, KINDS)
    n, layout = shape.num_members, Layout.of(shape)
    if layout.num_nodes != n:
        rule = f"needs one member on each node, not {int(layout.count.max())}"
        raise BadInput([Fault(key="algorithm", value="pat", rule=rule, nearest="ring")])
    member, block = np.arange(n, dtype=np.int64), -(-nbytes // n)
    down = []
    for k in reversed(range((n - 1).bit_length())):
        num_blocks = -(-(n - (1 << k)) // (2 << k))
        nbytes_each = np.full(n, num_blocks * block, dtype=np.int64)
        down.append(Phase(source=member, destination=(member + (1 << k)) % n, nbytes=nbytes_each, num_steps=1))
    up = [
        Phase(source=step.destination, destination=step.source, nbytes=step.nbytes, num_steps=1)
        for step in reversed(down)
    ]
    phases = tuple(down if kind == "all_gather" else up)
    return Traffic(
        algorithm="pat",
        phases=phases,
        pipelined=True,
        memory_nbytes=memory_traffic(kind, nbytes, shape, phases),
        num_sms=collective_sms(layout),
        own_nbytes=block,
    )
