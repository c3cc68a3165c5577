"""Pictures of clusters: what is there, what is counted, and that nothing is drawn over."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from clustersim import plot
from clustersim.library.card import list_cards
from clustersim.library.part import load_part
from clustersim.library.topologies import load_topology
from clustersim.topology.topology import Topology

MOST_SHAPES = 60


def words(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def boxed(ax: Axes) -> Iterator[tuple[float, float, float, float]]:
    """Left, bottom, right and top of each box."""
    for patch in ax.patches:
        extents = patch.get_extents().transformed(ax.transData.inverted())
        yield extents.x0, extents.y0, extents.x1, extents.y1


def apart(ax: Axes) -> bool:
    """Whether no box lies over another."""
    found = list(boxed(ax))
    slack = 1e-6
    return not any(
        a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack
        for k, a in enumerate(found)
        for b in found[k + 1 :]
    )


@pytest.mark.parametrize("name", [name for name, _ in list_cards()["topology"]])
def test_every_card_is_drawn_within_the_picture_and_nothing_over_another(name: str) -> None:
    ax = plot.topology(load_topology(name))
    ax.figure.draw_without_rendering()
    assert 3 <= len(ax.patches) <= MOST_SHAPES
    assert apart(ax)
    left, right, bottom, top = *ax.get_xlim(), *ax.get_ylim()
    for x0, y0, x1, y1 in boxed(ax):
        assert left <= x0 < x1 <= right
        assert bottom <= y0 < y1 <= top
    for text in ax.texts:
        extents = text.get_window_extent().transformed(ax.transData.inverted())
        assert left - 0.1 <= extents.x0
        assert extents.x1 <= right + 0.1


@pytest.mark.parametrize(("name", "nodes"), [("dgx-h100", 16384), ("frontier", 4096), ("gb200-nvl72", 1024)])
def test_a_large_cluster_takes_no_more_shapes_and_says_how_many_there_are(name: str, nodes: int) -> None:
    cluster = load_topology(name, nodes=nodes)
    ax = plot.topology(cluster)
    assert len(ax.patches) + len(ax.lines) <= 2 * MOST_SHAPES
    assert f"x {nodes:,} nodes" in words(ax)
    assert f"{cluster.num_devices:,} GPUs in {nodes:,} nodes" in ax.get_title(loc="left")


def test_parts_and_labels_of_a_node() -> None:
    found = words(plot.topology(load_topology("dgx-a100", nodes=32)))
    assert [word for word in found if word.startswith("GPU ")] == [f"GPU {k}" for k in range(8)]
    assert [word for word in found if word.startswith("NIC ")] == [f"NIC {k}" for k in range(8)]
    assert [word for word in found if word.startswith("PCIe switch")] == [f"PCIe switch {k}" for k in range(4)]
    assert "279 GB/s (12 links) a GPU, each way" in found
    assert "8 NICs, 24 GB/s each way" in found
    assert "x 16 leaves" in found
    assert "8 x 24 GB/s a node, each way" in found


def test_direct_links_are_as_many_as_there_are_and_as_wide_as_they_carry() -> None:
    ax = plot.topology(load_topology("dgx1-v100"))
    arcs = [line for line in ax.lines if len(line.get_xdata()) == 40]
    widths = sorted({line.get_linewidth() for line in arcs})
    assert len(arcs) == 16
    assert len(widths) == 2
    assert sum(line.get_linewidth() == widths[1] for line in arcs) == 8
    assert {"NVLink 23.25 GB/s each way", "NVLink 46.5 GB/s each way, 2 links"} <= set(words(ax))


def test_gpus_left_out_are_counted() -> None:
    found = words(plot.topology(load_topology("gb200-nvl72")))
    assert any("8 of 72 GPUs drawn" in word for word in found)
    assert any("64 more" in word for word in found)
    assert "GPU 71" in found


def test_links_that_were_slowed_are_counted() -> None:
    cluster = load_topology("dgx-h100", nodes=4)
    assert plot.topology(cluster).get_title(loc="right") == ""
    slower = cluster.with_capacity({"node1/nic0.tx": 0.5, "leaf0/up": 0.5})
    assert plot.topology(slower).get_title(loc="right") == "2 resources have another capacity than drawn"


def test_which_nodes() -> None:
    mixed = load_topology("mixed-a100-h100")
    both, one = words(plot.topology(mixed)), words(plot.topology(mixed, nodes=[3]))
    assert sum("a100-sxm-80gb" in word for word in both) == sum("h100-sxm" in word for word in both) == 1
    assert not any("a100-sxm-80gb" in word for word in one)
    assert "at most 8 x 48 GB/s a node, each way" in both
    with pytest.raises(ValueError, match="nodes: 4 must be one of mixed-a100-h100's, 0 to 3"):
        plot.topology(mixed, nodes=[4])
    with pytest.raises(ValueError, match="at most 2"):
        plot.topology(mixed, nodes=[0, 1, 2])


@pytest.mark.parametrize(
    ("fabric", "expected"),
    [
        ("torus", "torus of 4 x 2 x 2 nodes"),
        ("mesh", "mesh of 4 x 4 nodes"),
        ("ring", "ring of 16 nodes"),
        ("fully_connected", "a link between each two nodes"),
    ],
)
def test_fabrics_without_switches(fabric: str, expected: str) -> None:
    ax = plot.topology(load_topology("torus-h100", nodes=16, fabric=fabric))
    ax.figure.draw_without_rendering()
    assert expected in words(ax)
    assert apart(ax)
    assert any(word.startswith("x 16 nodes") for word in words(ax))


def ring_of(n: int) -> Topology:
    graph = nx.cycle_graph(n)
    nx.set_node_attributes(graph, "gpu", "role")
    nx.set_edge_attributes(graph, {edge: {"bandwidth": "50 GB/s", "latency": "1 us"} for edge in graph.edges})
    return Topology.from_networkx(graph, gpu=load_part("gpu", "h100-sxm"), cpu=load_part("cpu", "grace"), name="own")


def test_a_graph_of_ones_own_is_drawn_or_its_links_are_named() -> None:
    small, large = plot.topology(ring_of(6)), plot.topology(ring_of(64))
    assert [word for word in words(small) if word.startswith("GPU ")] == [f"GPU {k}" for k in range(6)]
    assert words(small).count("50 GB/s") == 6
    assert not large.patches
    assert any("50 GB/s" in word for word in words(large))


def test_given_axes_are_used_and_a_figure_can_be_saved(tmp_path) -> None:
    ax = Figure(figsize=(8, 4.5)).subplots()
    assert plot.topology(load_topology("dgx-h100"), ax=ax) is ax
    plot.topology(load_topology("dgx-h100")).figure.savefig(tmp_path / "a.png")
    header = (tmp_path / "a.png").read_bytes()[16:24]
    assert (int.from_bytes(header[:4]), int.from_bytes(header[4:])) == (1600, 900)
