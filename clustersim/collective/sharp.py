"""SHARP: the switches between nodes add up what the nodes send and copy the sum to all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.channels import NVLS_CHANNELS, collective_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import flows_on_busiest_link, memory_traffic
from clustersim.collective.direct import direct
from clustersim.collective.hierarchical import Hierarchical
from clustersim.collective.layout import Layout
from clustersim.collective.nvls import nvls
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["MAX_NODES", "aggregated", "require_in_network", "sharp"]

KINDS = ("all_reduce", "all_gather", "reduce_scatter")

MAX_NODES = 512
"""Of all_gather and reduce_scatter: beyond it their n(N-1) flows and routes would fill the memory of a workstation."""


def sharp(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of a reduction in the network, laid out as NCCL's CollNetDirect: m members on each of N nodes.

    Reduce-scatter of S inside each node, by the node's switch where it adds up (:func:`~clustersim.collective.nvls`),
    else between all pairs; per lane, that is member of equal place, one stream of S/m that the network's switches add
    up and one that they copy, so each NIC sends S/m and receives S/m, where a ring's carries 2(N-1)/N·S/m; all-gather
    inside. All-gather and reduce-scatter between nodes are a stream from or to each member, of S/n: the network's
    adding and copying saves sends or receives, not both, and the N-1 steps.

    Chunks flow through all of it at once. One step between nodes: a switch passes on a packet as soon as it has the
    parts, up the aggregation tree and down again, which is the way of a route.

    **The aggregation tree.** A stream of S/m runs on the union of the routes from all members of a lane to the one on
    the first node, and back. On each of those links it counts once. A real aggregation tree has its root in a switch;
    the union of routes has the same links but for the last switches beside the first node.

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter"}
    nbytes : int
        payload S [B]
    shape : GroupShape
        with ``in_network``

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, the switches between nodes do not add up, there is one node,
        the nodes have unequally many members, or there are more than ``MAX_NODES`` of them and ``kind`` is not
        all_reduce

    References
    ----------
    Graham et al., "Scalable hierarchical aggregation and reduction protocol (SHARP)", COMHPC 2016; NCCL 2.20,
    ``src/device/all_reduce.h`` (CollNetDirect).
    """
    require_call("sharp", kind, nbytes, KINDS)
    require_in_network("sharp", shape)
    nested = Hierarchical(inside=nvls if shape.multicast else direct, between=_on_lane, pipelined=True, name="sharp")
    layout = Layout.of(shape)
    inside = NVLS_CHANNELS if shape.multicast and layout.num_lanes > 1 else 0
    return replace(nested(kind, nbytes, shape), num_sms=max(inside, collective_sms(layout)))


def require_in_network(algorithm: str, shape: GroupShape) -> None:
    """Raise :class:`BadInput` where no switch between nodes adds up for ``algorithm``."""
    faults = []
    if shape.num_members > 1 and not shape.in_network:
        rule = "needs switches between the nodes that add up and copy (SHARP)"
        faults.append(Fault(key="algorithm", value=algorithm, rule=rule, nearest="ring"))
    if shape.num_members > 1 and not shape.node.any():
        rule = "needs more than one node: its sums are made between them"
        nearest = "nvls" if shape.multicast else "ring"
        faults.append(Fault(key="algorithm", value=algorithm, rule=rule, nearest=nearest))
    if faults:
        raise BadInput(faults)


def aggregated(lanes: NDArray[np.int64], nbytes: int) -> Phase:
    """On each lane one stream to the first node's member, added up on the way, and one from it, copied.

    Parameters
    ----------
    lanes : NDArray[int64], shape (num_nodes, num_lanes)
        positions
    nbytes : int
        of a stream [B]
    """
    roots = np.broadcast_to(lanes[:1], lanes[1:].shape).reshape(-1)
    others = lanes[1:].reshape(-1)
    lane = np.tile(np.arange(lanes.shape[1], dtype=np.int64), len(lanes) - 1)
    return Phase(
        source=np.concatenate([others, roots]),
        destination=np.concatenate([roots, others]),
        nbytes=np.full(2 * len(others), nbytes, dtype=np.int64),
        num_steps=1,
        tree=np.concatenate([2 * lane, 2 * lane + 1]),
    )


def _on_lane(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Streams of one lane, a member a node."""
    n = shape.num_members
    if kind == "all_reduce":
        phase = aggregated(np.arange(n, dtype=np.int64)[:, None], nbytes)
    elif n > MAX_NODES:
        rule = f"nodes are too many for streams between all pairs in {kind}; at most {MAX_NODES}"
        raise BadInput([Fault(key="group", value=n, rule=rule, nearest=MAX_NODES)])
    else:
        # the switches between nodes do here what those of NVLS do inside
        (phase,) = nvls(kind, nbytes, GroupShape(node=np.zeros(n, dtype=np.int64), multicast=True)).phases
    return Traffic(
        algorithm="sharp",
        phases=(phase,),
        pipelined=True,
        memory_nbytes=memory_traffic(kind, nbytes, shape, (phase,)),
        num_flows=flows_on_busiest_link((phase,)),
    )
