"""Double binary tree, step by step: each slice goes up its tree and down again."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from clustersim.collective.layout import Layout
from clustersim.collective.steps.parts import cut, node_orders, pass_along, require_equal_nodes
from clustersim.collective.steps.schedule import Schedule, Script, require_steps
from clustersim.collective.traffic import GroupShape
from clustersim.collective.tree import KINDS, double_tree

__all__ = ["tree"]


def tree(kind: str, nbytes: int, shape: GroupShape, num_slices: int = 1) -> Schedule:
    """Transfers of :func:`clustersim.collective.tree.tree`.

    The payload is divided evenly among lanes, the two trees of a lane, and the rings inside a node, along which the
    chains run. A member sends a slice on when all of its children's, or its parent's, has come.

    Parameters
    ----------
    kind : {"all_reduce", "broadcast", "reduce"}
    nbytes : int
        payload S [B]
    shape : GroupShape
    num_slices : int
        messages that the part of one tree is cut into

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, ``num_slices`` is not positive, or nodes hold unequally many
        members
    """
    require_steps("tree", kind, nbytes, KINDS, num_slices)
    n, layout = shape.num_members, Layout.of(shape)
    require_equal_nodes(layout)
    lanes, num_rings = layout.lanes(), layout.num_rings
    orders = node_orders(layout)
    child, parent = double_tree(layout.num_nodes)
    script = Script(n, cut(nbytes, 2 * layout.num_lanes * num_rings * num_slices))
    for channel in range(2 * layout.num_lanes * num_rings):
        lane, rest = divmod(channel, 2 * num_rings)
        half, ring = divmod(rest, num_rings)
        heads = lanes[:, lane].tolist()
        edges = list(zip(lanes[parent[half], lane].tolist(), lanes[child[half], lane].tolist(), strict=True))
        if kind != "all_reduce":
            heads[0] = 0
        for head, order in zip(heads, orders[ring], strict=True):
            at = order.index(head)
            edges += pairwise([*order[at:], *order[:at]])
        down = _from_root(edges, heads[0])
        pass_along(script, down, range(channel * num_slices, (channel + 1) * num_slices), channel, kind)
    root, everybody = np.arange(n)[:, None] == 0, np.ones((n, 1), dtype=bool)
    held, wanted = root if kind == "broadcast" else everybody, root if kind == "reduce" else everybody
    return script.schedule("tree", kind, held, wanted)


def _from_root(edges: list[tuple[int, int]], root: int) -> list[tuple[int, int]]:
    """Edges (parent, child) in the order of the parents' distance from the root."""
    ordered, reached = [], [root]
    for parent in reached:  # grows while it is walked
        below = [edge for edge in edges if edge[0] == parent]
        ordered += below
        reached += [child for _, child in below]
    return ordered
