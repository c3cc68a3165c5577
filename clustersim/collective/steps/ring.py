"""Ring, step by step: one closed ring a lane and ring of the nodes, a block a member, slices of it in turn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from clustersim.collective.layout import Layout
from clustersim.collective.ring import KINDS
from clustersim.collective.steps.parts import (
    all_gather,
    cut,
    node_orders,
    pass_along,
    reduce_scatter,
    require_equal_nodes,
)
from clustersim.collective.steps.schedule import Schedule, Script, require_steps
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput, Fault

__all__ = ["closed_rings", "ring"]


def ring(kind: str, nbytes: int, shape: GroupShape, num_slices: int = 1) -> Schedule:
    """Transfers of :func:`clustersim.collective.ring.ring`.

    The payload is divided evenly among the rings of :func:`closed_rings`. All-gather and reduce-scatter pass blocks of
    1/n of a ring's part n-1 times; all-reduce is one after the other. Broadcast and reduce pass the slices of a ring's
    whole part along the ring, opened at the root, position 0.

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}
    nbytes : int
        payload S [B]
    shape : GroupShape
    num_slices : int
        messages a block, or a chain's whole part, is cut into

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, ``num_slices`` is not positive, or no rings close
    """
    require_steps("ring", kind, nbytes, KINDS, num_slices)
    n = shape.num_members
    rings = closed_rings(shape)
    root = np.arange(n)[:, None] == 0
    if kind in ("broadcast", "reduce"):
        script = Script(n, cut(nbytes, len(rings) * num_slices))
        for r, members in enumerate(rings):
            at = members.index(0)
            order = [*members[at:], *members[:at]]
            if kind == "reduce":  # the ring runs its one way, towards the root
                order = [0, *reversed(order[1:])]
            pass_along(script, list(pairwise(order)), range(r * num_slices, (r + 1) * num_slices), r, kind)
        everybody = np.ones_like(root)
        return script.schedule("ring", kind, *((root, everybody) if kind == "broadcast" else (everybody, root)))
    script = Script(n, cut(nbytes, len(rings) * n * num_slices))
    owned = np.zeros(script.shape, dtype=bool)
    for r, members in enumerate(rings):
        blocks = [[((r * n + i) * num_slices + s,) for s in range(num_slices)] for i in range(n)]
        for member, block in zip(members, blocks, strict=True):
            owned[member, [chunk for chunks in block for chunk in chunks]] = True
        if kind != "all_gather":
            reduce_scatter(script, members, blocks, r)
        if kind != "reduce_scatter":
            all_gather(script, members, blocks, r)
    every = np.ones_like(owned)
    held, wanted = owned if kind == "all_gather" else every, owned if kind == "reduce_scatter" else every
    return script.schedule("ring", kind, held, wanted)


def closed_rings(shape: GroupShape) -> list[list[int]]:
    """Rings through all members, positions in the group; each visits a node's members in turn.

    On one node they are the rings of the shape. Over N nodes of m members there is one a lane and ring of the nodes,
    and it stays on its rail: it enters a node where it left the one before. From member e of a node it goes on to the
    member before e, so that the next node is entered one earlier, and the m rings close when m divides N. Where it
    does not, nodes run in pairs, the second one backwards, which undoes the first one's shift; of an odd number of
    nodes the first three shift by 1, 1 and -2. The bytes of every member stay what they are; which edges inside a node
    carry them changes.

    Raises
    ------
    BadInput
        when nodes hold unequally many members, when there are two on each of an odd number of nodes, or when a mesh
        would have to run its rings backwards
    """
    layout = Layout.of(shape)
    num_nodes, m = layout.num_nodes, layout.num_lanes
    orders = node_orders(layout)
    if num_nodes == 1:
        return [order[0] for order in orders]
    require_equal_nodes(layout)
    if num_nodes % m and shape.rings is not None:
        rule = f"on meshes must be a multiple of the {m} members of each to be played step by step"
        raise BadInput([Fault(key="num_nodes", value=num_nodes, rule=rule, nearest=-(-num_nodes // m) * m)])
    if num_nodes % m and m == 2:
        rule = "with two members on each must be even to be played step by step"
        raise BadInput([Fault(key="num_nodes", value=num_nodes, rule=rule, nearest=num_nodes + 1)])
    shifts = [-1] * num_nodes if num_nodes % m == 0 else ([1, 1, -2] if num_nodes % 2 else [])
    shifts += [-1, 1] * ((num_nodes - len(shifts)) // 2)
    return [_closed(order, e, shifts) for order in orders for e in range(m)]


def _closed(order: list[list[int]], enter: int, shifts: list[int]) -> list[int]:
    """One ring over the nodes; ``enter`` and ``shifts`` are places in ``order[k]``, the ring of node k."""
    members: list[int] = []
    for inside, shift in zip(order, shifts, strict=True):
        m = len(inside)
        turned = [*inside[enter:], *inside[:enter]]
        if shift == 1:
            turned[1:] = turned[:0:-1]
        elif shift == -2:
            turned[-2:] = turned[:-3:-1]
        members += turned
        enter = (enter + shift) % m
    return members
