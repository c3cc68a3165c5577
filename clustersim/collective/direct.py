"""Direct: every pair of members exchanges its block without intermediaries."""

from __future__ import annotations

import numpy as np

from clustersim.collective.channels import PEERS_AT_ONCE, point_to_point_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import flows_on_busiest_link, memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["MAX_MEMBERS", "direct"]

KINDS = ("all_to_all", "all_gather", "reduce_scatter", "gather", "scatter")

MAX_MEMBERS = 2048
"""Beyond it n(n-1) flows and their routes would fill the memory of a workstation."""


def direct(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of the pairwise algorithm.

    Each of the n(n-1) ordered pairs carries one block of S/n, rounded up to whole bytes: member i's own block in an
    all-gather, the block for member j in an all-to-all and a reduce-scatter (which then adds up n blocks). Gather and
    scatter are the n-1 pairs to and from the root, position 0. Each member serves up to ``PEERS_AT_ONCE`` others at
    once, so there are ceil((n-1) / PEERS_AT_ONCE) steps.

    Parameters
    ----------
    kind : {"all_to_all", "all_gather", "reduce_scatter", "gather", "scatter"}
    nbytes : int
        payload S [B]: the gathered buffer for all_gather and gather, the buffer before it is cut for the others
    shape : GroupShape

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, or there are more than ``MAX_MEMBERS`` members
    """
    require_call("direct", kind, nbytes, KINDS)
    n = shape.num_members
    source = np.arange(1, n, dtype=np.int64)
    destination = np.zeros_like(source)
    if kind == "scatter":
        source, destination = destination, source
    elif kind != "gather":
        if n > MAX_MEMBERS:
            rule = f"members are too many for {kind} between all pairs; at most {MAX_MEMBERS}"
            raise BadInput([Fault(key="group", value=n, rule=rule, nearest=MAX_MEMBERS)])
        source = np.repeat(np.arange(n, dtype=np.int64), n - 1)
        destination = (source + np.tile(np.arange(1, n, dtype=np.int64), n)) % n
    phase = Phase(
        source=source,
        destination=destination,
        nbytes=np.full_like(source, -(-nbytes // n)),
        num_steps=-(-(n - 1) // PEERS_AT_ONCE),
    )
    phases = (phase,) if n > 1 else ()
    return Traffic(
        algorithm="direct",
        phases=phases,
        pipelined=True,
        memory_nbytes=memory_traffic(kind, nbytes, shape, phases),
        num_sms=point_to_point_sms(Layout.of(shape).num_nodes, n - 1),
        num_flows=flows_on_busiest_link(phases),
        own_nbytes=-(-nbytes // n),
    )
