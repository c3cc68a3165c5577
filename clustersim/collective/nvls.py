"""NVLS: the switches inside a node add up what its members send and copy what one of them sends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from clustersim.collective.channels import NVLS_CHANNELS
from clustersim.collective.checks import require_call
from clustersim.collective.demand import flows_on_busiest_link, memory_traffic
from clustersim.collective.hierarchical import Hierarchical
from clustersim.collective.layout import Layout
from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.collective.tree import tree
from clustersim.faults import BadInput, Fault

__all__ = ["nvls"]

KINDS = ("all_reduce", "all_gather", "reduce_scatter")


def nvls(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of NVLink SHARP.

    **One node.** Each of m members owns S/m. Reduce-scatter is m streams: the switch adds up the members' parts of an
    owner's share on the way to it. All-gather is m streams that the switch copies to all. All-reduce is both, so a
    member sends S and receives S, where a ring's sends and receives 2(m-1)/m·S. One step, two for all-reduce.

    **Several nodes.** All-reduce as NCCL's NVLSTree: reduced to the owners inside each node, double binary trees of
    S/m among the members of equal place, copied to all inside. The two others take a ring of S/m between nodes; NCCL
    runs NVLS for these over several nodes only with in-network reduction (``src/enqueue.cc``), so here it is a what-if.
    Chunks flow through all of it at once.

    **What is left out.** The owner's own part crosses its link too: NVLS sends S and receives S/m in a reduce-scatter
    (NCCL issue 1083), here (m-1)/m·S and S/m. Flows join different members. The fraction of the bandwidth in NCCL's
    tuning model, 0.85 · 15/16 on Hopper, is one of S in an all-reduce, as here.

    Each owner's share is rounded up to whole bytes. NCCL does not offer it to 2 members; here they may have it.

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter"}
    nbytes : int
        payload S [B]
    shape : GroupShape
        with ``multicast``

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, the switches inside the nodes do not add up and copy, no node
        has more than one member, or the nodes have unequally many

    References
    ----------
    NCCL 2.20, ``src/device/all_reduce.h`` (``ncclNvls``, ``ncclNvlsTree``).
    """
    require_call("nvls", kind, nbytes, KINDS)
    n, num_nodes = shape.num_members, Layout.of(shape).num_nodes
    faults = []
    if n > 1 and not shape.multicast:
        rule = "needs switches inside the nodes that add up and copy (NVLink SHARP)"
        faults.append(Fault(key="algorithm", value="nvls", rule=rule, nearest="ring"))
    if n > 1 and num_nodes == n:
        rule = "needs more than one member on a node"
        faults.append(Fault(key="algorithm", value="nvls", rule=rule, nearest="tree"))
    if faults:
        raise BadInput(faults)
    if num_nodes > 1:
        between = tree if kind == "all_reduce" else ring
        nested = Hierarchical(inside=nvls, between=between, pipelined=True, name="nvls")
        return replace(nested(kind, nbytes, shape), num_sms=NVLS_CHANNELS)

    owner = np.repeat(np.arange(n, dtype=np.int64), n - 1)
    other = (owner + np.tile(np.arange(1, n, dtype=np.int64), n)) % n
    share = np.full_like(owner, -(-nbytes // n))
    added = Phase(source=other, destination=owner, nbytes=share, num_steps=1, tree=owner)
    copied = Phase(source=owner, destination=other, nbytes=share, num_steps=1, tree=owner)
    phases = {"all_reduce": (added, copied), "all_gather": (copied,), "reduce_scatter": (added,)}[kind]
    phases = phases if n > 1 else ()
    return Traffic(
        algorithm="nvls",
        phases=phases,
        pipelined=True,
        memory_nbytes=memory_traffic(kind, nbytes, shape, phases),
        num_sms=NVLS_CHANNELS,
        num_flows=flows_on_busiest_link(phases),
    )
