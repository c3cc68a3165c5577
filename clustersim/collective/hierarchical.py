"""Hierarchical: rings inside nodes and rings between the members of equal place, one after the other."""

from __future__ import annotations

import numpy as np

from clustersim.collective.channels import collective_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["hierarchical"]

KINDS = ("all_reduce", "all_gather", "reduce_scatter")


def hierarchical(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of two levels of rings: m members on each of N nodes, n = N·m.

    All-reduce is a reduce-scatter inside each node (each member sends (m-1)/m·S), an all-reduce of S/m among the
    N members of equal place (2(N-1)/N·S/m) and an all-gather inside the node. All-gather goes between nodes first
    ((N-1)·S/n), then inside; reduce-scatter the other way round. The parts are separate collectives: none starts
    before the one before has ended. Against one ring, the serial steps drop from 2(n-1) to 2(m-1) + 2(N-1). On a
    mesh the bytes inside a node are divided among its rings (``shape.rings``).

    Each ring's flow is rounded up to whole bytes; all members have equal loads.

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter"}
    nbytes : int
        payload S [B]
    shape : GroupShape

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, or the nodes hold unequal numbers of members
    """
    require_call("hierarchical", kind, nbytes, KINDS)
    n, layout = shape.num_members, Layout.of(shape)
    num_nodes, m = layout.num_nodes, layout.num_lanes
    if n != num_nodes * m:
        rule = f"needs equally many members on each node, not {m} to {int(layout.count.max())}"
        raise BadInput([Fault(key="algorithm", value="hierarchical", rule=rule, nearest="ring")])

    passes = 2 if kind == "all_reduce" else 1
    source, destination, uses = layout.cycle()
    per_ring = -(-(m - 1) * nbytes // (m * layout.num_rings))
    inside = Phase(source=source, destination=destination, nbytes=uses * per_ring, num_steps=m - 1)
    lanes = layout.lanes()
    between = Phase(
        source=lanes.reshape(-1),
        destination=np.roll(lanes, -1, axis=0).reshape(-1),
        nbytes=np.full(n, -(-passes * (num_nodes - 1) * nbytes // n), dtype=np.int64),
        num_steps=passes * (num_nodes - 1),
    )
    order = {
        "all_reduce": (inside, between, inside),
        "all_gather": (between, inside),
        "reduce_scatter": (inside, between),
    }[kind]
    phases = tuple(phase for phase in order if phase.num_steps)
    memory = memory_traffic(kind, nbytes, shape, phases)
    if m > 1 and num_nodes > 1:
        memory += 2 * passes * -(-nbytes // m)  # each part writes its S/m for the next one to read
    return Traffic(
        algorithm="hierarchical",
        phases=phases,
        pipelined=False,
        memory_nbytes=memory,
        num_sms=collective_sms(layout),
    )
