"""Bytes cut into chunks, and rings and chains over them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from clustersim.collective.layout import Layout
from clustersim.collective.steps.schedule import Script
from clustersim.faults import BadInput, Fault

__all__ = ["all_gather", "cut", "node_orders", "pass_along", "reduce_scatter", "require_equal_nodes"]

Blocks = Sequence[Sequence[tuple[int, ...]]]
"""``blocks[i][s]``: the chunks of slice s of block i, which is the one that member i of a ring ends or begins with."""


def cut(nbytes: int, count: int) -> list[int]:
    """``nbytes`` in ``count`` parts that differ by at most one byte [B]."""
    ends = [nbytes * i // count for i in range(count + 1)]
    return [b - a for a, b in pairwise(ends)]


def reduce_scatter(
    script: Script, members: Sequence[int], blocks: Blocks, channel: int, after: Sequence[int] = ()
) -> None:
    """Once round the ring: member i starts block i-1 on its way and ends with the sum of block i."""
    n = len(members)
    for step in range(n - 1):
        for i in range(n):
            for chunks in blocks[(i - step - 1) % n]:
                wait = after if step == 0 else ()
                script.send(members[i], members[(i + 1) % n], chunks, adds=True, channel=channel, after=wait)


def all_gather(script: Script, members: Sequence[int], blocks: Blocks, channel: int, after: Sequence[int] = ()) -> None:
    """Once round the ring: member i starts its block i on its way and ends with all."""
    n = len(members)
    for step in range(n - 1):
        for i in range(n):
            for chunks in blocks[(i - step) % n]:
                wait = after if step == 0 else ()
                script.send(members[i], members[(i + 1) % n], chunks, adds=False, channel=channel, after=wait)


def pass_along(
    script: Script, edges: Sequence[tuple[int, int]], slices: Sequence[int], channel: int, kind: str
) -> None:
    """Down a tree of (parent, child) edges, parents first, for broadcast; up it for reduce; both for all-reduce."""
    for chunk in slices:
        if kind != "broadcast":
            for parent, child in reversed(edges):
                script.send(child, parent, (chunk,), adds=True, channel=channel)
        if kind != "reduce":
            for parent, child in edges:
                script.send(parent, child, (chunk,), adds=False, channel=channel)


def node_orders(layout: Layout) -> list[list[list[int]]]:
    """``[r][k]``: the members of node k along ring r, from the node's first member on."""
    orders: list[list[list[int]]] = []
    for following in layout.rings:
        orders.append([])
        for first in layout.order[layout.first].tolist():
            order = [first]
            while (member := int(following[order[-1]])) != first:
                order.append(member)
            orders[-1].append(order)
    return orders


def require_equal_nodes(layout: Layout) -> None:
    """Raise :class:`BadInput` unless each node holds equally many members."""
    least, most = layout.num_lanes, int(layout.count.max())
    if least != most:
        rule = f"must sit equally on all nodes to be played step by step, not {least} to {most} a node"
        raise BadInput([Fault(key="group", value=len(layout.order), rule=rule)])
