"""Hierarchical, step by step: rings inside nodes and rings between them, each part after the one before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.hierarchical import KINDS
from clustersim.collective.layout import Layout
from clustersim.collective.steps.parts import all_gather, cut, node_orders, reduce_scatter, require_equal_nodes
from clustersim.collective.steps.schedule import Schedule, Script, require_steps
from clustersim.collective.traffic import GroupShape

__all__ = ["hierarchical"]


def hierarchical(kind: str, nbytes: int, shape: GroupShape, num_slices: int = 1) -> Schedule:
    """Transfers of :func:`clustersim.collective.hierarchical.hierarchical`.

    Each part is a collective of its own: it starts when the part before has ended on all members of its ring. The N
    blocks of one place, which the members of that place end with, travel together inside a node; slice s of such a
    message is slice s of each. An all-to-all goes inside nodes to the member of the receiver's place, then to the
    receiver.

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
    nbytes : int
        payload S [B]
    shape : GroupShape
    num_slices : int
        messages a block is cut into

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, ``num_slices`` is not positive, or nodes hold unequally many
        members
    """
    require_steps("hierarchical", kind, nbytes, KINDS, num_slices)
    layout = Layout.of(shape)
    require_equal_nodes(layout)
    if kind == "all_to_all":
        return _exchange(nbytes, layout, num_slices)
    lanes, num_rings = layout.lanes(), layout.num_rings
    num_nodes, m = lanes.shape
    chunk = np.arange(num_nodes * m * num_rings * num_slices).reshape(m, num_nodes, num_rings, num_slices)
    script = Script(lanes.size, cut(nbytes, chunk.size))
    owned = np.zeros(script.shape, dtype=bool)
    owned[lanes.T[..., None], chunk.reshape(m, num_nodes, -1)] = True
    place = {int(member): i for i, members in enumerate(lanes.T) for member in members}
    slices = range(num_slices)

    inside = [
        (order, [[tuple(chunk[place[i], :, r, s].tolist()) for s in slices] for i in order])
        for r, orders in enumerate(node_orders(layout))
        for order in orders
    ]
    between = [
        (lanes[:, i].tolist(), [[tuple(chunk[i, k, :, s].tolist()) for s in slices] for k in range(num_nodes)])
        for i in range(m)
    ]
    parts = [] if kind == "all_gather" else [(reduce_scatter, inside), (reduce_scatter, between)]
    parts += [] if kind == "reduce_scatter" else [(all_gather, between), (all_gather, inside)]
    for number, (once_round, rings) in enumerate(parts):
        # an all-reduce between nodes is one collective: its second half follows its first without a break
        together = number == 2
        waits = [[] if together else _last_arrivals(script, order) for order, _ in rings]
        for channel, ((order, blocks), after) in enumerate(zip(rings, waits, strict=True)):
            once_round(script, order, blocks, channel, after)
    every = np.ones_like(owned)
    held, wanted = owned if kind == "all_gather" else every, owned if kind == "reduce_scatter" else every
    return script.schedule("hierarchical", kind, held, wanted)


def _exchange(nbytes: int, layout: Layout, num_slices: int) -> Schedule:
    """All-to-all: chunk (i, j) goes from i to the member of i's node at j's place, and from there to j."""
    lanes = layout.lanes()
    n, (num_nodes, m) = lanes.size, lanes.shape
    script = Script(n, [piece for block in cut(nbytes, n) * n for piece in cut(block, num_slices)])
    chunk = np.arange(n * n * num_slices).reshape(n, n, num_slices)
    held, wanted = np.zeros(script.shape, dtype=bool), np.zeros(script.shape, dtype=bool)
    for i in range(n):
        held[i, chunk[i].ravel()] = wanted[i, chunk[:, i].ravel()] = True

    def send(i: int, j: int, of: NDArray[np.int64], after: Sequence[int]) -> None:
        for s in range(num_slices):
            script.send(i, j, of[..., s].ravel().tolist(), adds=False, after=after)

    for node in lanes.tolist():
        for away in range(1, m):
            for place, i in enumerate(node):
                to = (place + away) % m
                send(i, node[to], chunk[i, lanes[:, to]], ())
    waits = [_last_arrivals(script, lane) for lane in lanes.T.tolist()]
    for away in range(1, num_nodes):
        for k, node in enumerate(lanes.tolist()):
            for place, i in enumerate(node):
                j = int(lanes[(k + away) % num_nodes, place])
                send(i, j, chunk[lanes[k], j], waits[place])
    return script.schedule("hierarchical", "all_to_all", held, wanted)


def _last_arrivals(script: Script, members: list[int]) -> list[int]:
    """The last transfer of each connection into ``members``; those before it have come before."""
    last = {(t.source, t.destination, t.channel): number for number, t in enumerate(script.transfers)}
    return sorted(number for (_, destination, _), number in last.items() if destination in members)
