"""A cluster as a picture: the inside of its nodes, and the fabric between them by levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from clustersim.plot.canvas import axes_or_new
from clustersim.plot.fabric_picture import draw_fabric
from clustersim.plot.graph_picture import draw_graph, draw_names
from clustersim.plot.node_picture import Frame, draw_node
from clustersim.topology.fabric_outline import fabric_outline
from clustersim.topology.node_outline import NodeOutline, node_outlines
from clustersim.topology.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["topology"]

_WIDTH, _HEIGHT = 16.0, 9.0

_NODE_WIDTH = 9.6

_MOST_KINDS = 2
"""Kinds of nodes whose insides are drawn."""


def topology(cluster: Topology, ax: Axes | None = None, nodes: Sequence[int] | None = None) -> Axes:
    """Draw a cluster: a few dozen shapes, however large it is. Equal parts are drawn once or a few times, and counted.

    On the left the inside of a node: GPUs, the switch or the links between them, the host below, network ports. On the
    right the fabric, from the nodes up. The wider a line, the more it carries; numbers are payloads of one direction,
    as built: of links that were slowed or cut the title says how many there are.

    Parameters
    ----------
    cluster : Topology
    ax : Axes, optional
        where to draw; a new figure when None
    nodes : Sequence[int], optional
        numbers of at most two nodes whose inside is drawn; the first of each of the first two kinds when None

    Returns
    -------
    Axes
        without axes

    Raises
    ------
    ValueError
        when there is no such node, or more than two are asked for
    """
    ax = axes_or_new(ax)
    ax.set_xlim(0, _WIDTH)
    ax.set_ylim(0, _HEIGHT)
    ax.set_axis_off()
    kinds = node_outlines(cluster)
    count = f"{cluster.num_devices:,} GPU{'s' * (cluster.num_devices != 1)}"
    where = f"{cluster.num_nodes:,} node{'s' * (cluster.num_nodes != 1)}"
    ax.set_title(f"{cluster.name}: {count} in {where}", loc="left")
    slower = _num_changed(cluster)
    if slower:
        ax.set_title(f"{slower:,} resources have another capacity than drawn", loc="right", fontsize="medium")
    chosen = _chosen(cluster, kinds, nodes)
    whole = Frame(left=0.1, bottom=0.1, width=_WIDTH - 0.2, height=_HEIGHT - 0.2)
    if not kinds:
        draw_graph(ax, cluster, whole)
        return ax
    fabric = fabric_outline(cluster)
    alone = fabric is None and cluster.num_nodes == 1
    left = Frame(left=0.1, bottom=0.1, width=(_WIDTH if alone else _NODE_WIDTH) - 0.3, height=_HEIGHT - 0.2)
    for node, frame in zip(chosen, _stacked(left, len(chosen)), strict=True):
        draw_node(ax, node, frame)
    if not alone:
        right = Frame(left=_NODE_WIDTH + 0.3, bottom=0.1, width=_WIDTH - _NODE_WIDTH - 0.4, height=_HEIGHT - 0.2)
        ax.plot([_NODE_WIDTH, _NODE_WIDTH], [0.2, _HEIGHT - 0.2], color="#BBBBBB", linewidth=0.8)
        if fabric:
            draw_fabric(ax, fabric, right)
        else:
            draw_names(ax, cluster, right, fabric_only=True)
    return ax


def _num_changed(cluster: Topology) -> int:
    """Resources whose capacity is no longer that of their block."""
    table = cluster.resources
    built = np.repeat([round(block.capacity) for block in table.blocks], np.diff(table.first))
    return int(np.count_nonzero(table.capacity != built))


def _stacked(frame: Frame, count: int) -> list[Frame]:
    """Equal parts of a frame, from the top down."""
    height = frame.height / count
    gap = 0.1 if count > 1 else 0.0
    return [replace(frame, bottom=frame.y(1) - (k + 1) * height, height=height - gap) for k in range(count)]


def _chosen(cluster: Topology, kinds: Sequence[NodeOutline], nodes: Sequence[int] | None) -> list[NodeOutline]:
    if nodes is None:
        return list(kinds[:_MOST_KINDS])
    if len(nodes) > _MOST_KINDS:
        raise ValueError(f"nodes: {len(nodes)} of them; at most {_MOST_KINDS} are drawn")
    found = []
    for number in nodes:
        kind = [kind for kind in kinds if kind.first <= number < kind.first + kind.count]
        if not kind:
            raise ValueError(f"nodes: {number} must be one of {cluster.name}'s, 0 to {cluster.num_nodes - 1}")
        found += kind
    return found
