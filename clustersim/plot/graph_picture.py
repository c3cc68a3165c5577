"""A graph of somebody's own as a picture: its vertices where a spring model puts them, or the names of its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clustersim.plot.node_picture import Frame
from clustersim.plot.palette import colour_of
from clustersim.plot.shapes import box, cable, label
from clustersim.topology.naming import listing
from clustersim.topology.topology import Topology
from clustersim.units import show

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MOST_VERTICES", "draw_graph", "draw_names"]

MOST_VERTICES = 40
"""GPUs and switches of a graph that is drawn; of a larger one the names of links are listed."""

_MOST_LINES = 24


def draw_graph(ax: Axes, cluster: Topology, frame: Frame) -> None:
    """Draw the links that routes cross between GPUs and the junctions that they meet in."""
    import networkx as nx

    if cluster.num_devices > MOST_VERTICES:
        draw_names(ax, cluster, frame)
        return
    try:
        graph = cluster.to_networkx()
    except ValueError:  # two links between the same two vertices
        draw_names(ax, cluster, frame)
        return
    if len(graph) > MOST_VERTICES:
        draw_names(ax, cluster, frame)
        return
    spots = nx.spring_layout(graph.to_undirected(), seed=0, iterations=200)
    place = {v: (frame.x(0.5 + 0.44 * float(x)), frame.y(0.48 + 0.42 * float(y))) for v, (x, y) in spots.items()}
    capacity = {(a, b): float(given["bandwidth"]) for a, b, given in graph.edges(data=True)}
    for (a, b), one in capacity.items():
        if capacity.get((b, a)) == one and a > b:
            continue  # the other direction of the same link
        (xa, ya), (xb, yb) = place[a], place[b]
        cable(ax, [xa, xb], [ya, yb], one)
        if len(capacity) <= 2 * MOST_VERTICES:
            label(ax, (xa + xb) / 2, (ya + yb) / 2, show(one, "B/s"), fontsize=8)
    for vertex, given in graph.nodes(data=True):
        colour = colour_of("compute" if given["role"] == "gpu" else "tp")
        name = str(vertex).replace("gpu", "GPU ").replace("switch", "switch ")
        box(ax, place[vertex], (1.0, 0.45), name, colour, 9)


def draw_names(ax: Axes, cluster: Topology, frame: Frame, *, fabric_only: bool = False) -> None:
    """List links that no node has inside, or all: their names, how many there are and what each carries."""
    rows = [one for one in listing(cluster.resources) if one.kind not in ("hbm", "dram", "drive", "cores")]
    if fabric_only:
        rows = [one for one in rows if not one.names.startswith("node") or one.kind == "nic"]
    lines = [f"{one.count:,} x {show(one.capacity, 'B/s')}  {one.names}" for one in rows[:_MOST_LINES]]
    if len(rows) > _MOST_LINES:
        lines.append(f"and {len(rows) - _MOST_LINES} more kinds")
    ax.text(frame.x(0), frame.y(0.98), "links", ha="left", va="top", fontsize=12, weight="bold")
    ax.text(frame.x(0), frame.y(0.92), "\n".join(lines), ha="left", va="top", fontsize=9, linespacing=1.5)
