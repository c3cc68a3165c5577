"""How groups sit: those that sit alike have one shape, and so one set of flows."""

from __future__ import annotations

from math import lcm

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape
from clustersim.topology.meshes import Meshes
from clustersim.topology.rings import rings
from clustersim.topology.topology import Topology

__all__ = ["seatings"]


def seatings(
    topology: Topology, meshes: Meshes | None, devices: NDArray[np.int64]
) -> tuple[list[GroupShape], NDArray[np.int64]]:
    """Shapes of n groups of m members.

    Behind switches a shape is which members share a node. On meshes it is also the rings inside each node, which come
    from the links between the members' own GPUs and from nothing else: groups on other GPUs that are joined alike have
    the same shape, whatever the numbers of the ranks and the GPUs. Groups whose switches add up are kept apart from
    those whose switches do not.

    Parameters
    ----------
    meshes : Meshes, optional
        those of ``topology``
    devices : NDArray[int64], shape (n, m)
        of the members of each group

    Returns
    -------
    shapes : list[GroupShape]
        pairwise different
    shape_of : NDArray[int64], shape (n,)
        index into them
    """
    node = _first_on_node(topology.node_of[devices])
    multicast = topology.multicast[devices].all(axis=1, keepdims=True).astype(np.int64)
    spots = [] if meshes is None else [_spots(meshes, node, devices)]
    patterns, of = _distinct(np.concatenate([node, *spots, multicast], axis=1))
    m = devices.shape[1]
    made = [
        GroupShape(
            node=p[:m],
            rings=None if meshes is None else _rings(meshes, p[:m], p[m:-1]),
            multicast=bool(p[-1]),
            in_network=topology.in_network is not None,
        )
        for p in patterns
    ]
    index: dict[tuple[bytes, bytes, bool], int] = {}
    shape_of = np.empty(len(made), dtype=np.int64)
    for i, shape in enumerate(made):
        key = shape.node.tobytes(), b"" if shape.rings is None else shape.rings.tobytes(), shape.multicast
        shape_of[i] = index.setdefault(key, i)
    kept, renumbered = np.unique(shape_of, return_inverse=True)
    return [made[i] for i in kept], renumbered.reshape(-1)[of]


def _first_on_node(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each member of each group the position of the first member on the same node, shape as ``nodes``."""
    order = np.argsort(nodes, axis=1, kind="stable")
    ordered = np.take_along_axis(nodes, order, axis=1)
    starts = np.ones(nodes.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    columns = np.broadcast_to(np.arange(nodes.shape[1]), nodes.shape)
    run = np.maximum.accumulate(np.where(starts, columns, 0), axis=1)
    first = np.empty_like(nodes)
    np.put_along_axis(first, order, np.take_along_axis(order, run, axis=1), axis=1)
    return first


def _distinct(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Different rows, and which of them each is; by hash: sorting long rows takes seconds for a million ranks."""
    weight = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, size=rows.shape[1])
    _, first, of = np.unique(rows @ weight, return_index=True, return_inverse=True)
    if (rows[first][of] == rows).all():
        return rows[first], of.reshape(-1)
    distinct, of = np.unique(rows, axis=0, return_inverse=True)
    return distinct, of.reshape(-1)


def _spots(meshes: Meshes, node: NDArray[np.int64], devices: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each member's spot, -1 where there is but one ring: outside meshes and on nodes of one or two members."""
    n, m = node.shape
    flat = (node + m * np.arange(n)[:, None]).reshape(-1)
    together = np.bincount(flat, minlength=n * m)[flat].reshape(n, m)
    return np.where(together > 2, meshes.spot[devices], -1)


def _rings(meshes: Meshes, node: NDArray[np.int64], spot: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Rings inside the nodes of one group; where nodes have unequally many, each as often as makes them equal."""
    layout = Layout.of(GroupShape(node=node))
    found = []
    for count in np.unique(layout.count):
        members = layout.order[layout.first[layout.count == count][:, None] + np.arange(count)]
        kinds, kind = _distinct(spot[members])
        for k, spots in enumerate(kinds):
            if spots[0] >= 0:
                found.append((members[kind == k], rings(meshes.num_links[np.ix_(spots, spots)])))
    num_rings = lcm(*(len(orders) for _, orders in found))
    if num_rings == 1:
        return None  # no node has another order than its own
    following = np.repeat(layout.rings, num_rings, axis=0)
    for members, orders in found:
        for r in range(num_rings):
            ring = members[:, orders[r % len(orders)]]
            following[r, ring] = np.roll(ring, -1, axis=1)
    return following
