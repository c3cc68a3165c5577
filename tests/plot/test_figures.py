"""The figures draw what the tables say."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from clustersim import analysis, plot
from clustersim.plot.canvas import thinned, time_unit
from clustersim.plot.palette import COLOURS, colour_of
from clustersim.trace.frame import frame
from clustersim.trace.record import Rates

MS = 10**6


@pytest.fixture
def record(scene):
    for rank in (0, 8):
        lane = scene.lane(rank=rank, multiplicity=8)
        lane.program.resident["gpu/weights"] = 2 * 2**30
        lane.add(
            scene.compute("a compute op"),
            (0, 0, 40 * MS),
            (100 * MS, 100 * MS, 140 * MS),
            end_bytes={"gpu/activations": (1 + rank) * 2**30},
            micro_batch=5,
        )
        lane.add(scene.collective("dp"), (40 * MS, 40 * MS, 80 * MS), (140 * MS, 140 * MS, 180 * MS), stream="dp")
        lane.add(scene.copy(), (80 * MS, 80 * MS, 90 * MS), (180 * MS, 180 * MS, 190 * MS), stream="copy")
        lane.add(scene.optimizer(), (90 * MS, 90 * MS, 100 * MS), (190 * MS, 190 * MS, 200 * MS))
    return scene.record()


@pytest.fixture
def trace(record):
    return frame(record)


def bars(ax):
    return {c.get_label(): len(c.get_paths()) for c in ax.collections}


def test_timeline_draws_each_op_once_in_the_colour_of_its_category(trace):
    ax = plot.timeline(trace)
    assert bars(ax) == {"compute": 4, "dp": 4, "copy": 4, "optimizer": 4}
    for collection in ax.collections:
        assert to_hex(collection.get_facecolor()[0]).upper() == COLOURS[collection.get_label()].upper()
    assert {t.get_text() for t in ax.get_legend().get_texts()} == {"compute", "dp", "copy", "optimizer"}


def test_timeline_puts_bars_where_the_ops_are(trace):
    ax = plot.timeline(trace, ranks=[8])
    corners = {c.get_label(): [p.get_extents() for p in c.get_paths()] for c in ax.collections}
    assert [(b.x0, b.x1) for b in corners["dp"]] == [(40, 80), (140, 180)]
    assert ax.get_xlabel() == "time [ms]"
    assert [t.get_text() for t in ax.get_yticklabels()] == ["rank 8  compute", "dp", "copy"]
    rows = [t for t, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True) if label.get_text() == "dp"]
    assert corners["dp"][0].y0 < rows[0] < corners["dp"][0].y1


def test_timeline_of_one_step_begins_at_its_first_op(trace):
    ax = plot.timeline(trace, step=1)
    assert bars(ax)["compute"] == 2
    assert ax.get_xlim() == (0, 100)
    assert ax.get_xlabel() == "time since the step's first op [ms]"


def test_launches_ahead_of_a_step_are_not_drawn(trace):
    ahead = trace[trace["step"] == 1].iloc[:2].assign(category="launch", stream="host")
    ahead = ahead.assign(start_ns=[50 * MS, 95 * MS], end_ns=[60 * MS, 110 * MS])
    ax = plot.timeline(pd.concat([trace, ahead]), step=1)
    assert ax.get_xlim() == plot.timeline(trace, step=1).get_xlim()
    assert bars(ax)["launch"] == 1


def test_timeline_of_a_window_cuts_what_reaches_out_of_it(trace):
    ax = plot.timeline(trace, ranks=[8], window=(0.06, 0.085))
    corners = {c.get_label(): [(p.get_extents().x0, p.get_extents().x1) for p in c.get_paths()] for c in ax.collections}
    assert corners == {"dp": [(60, 80)], "copy": [(80, 85)]}
    with pytest.raises(ValueError, match="window"):
        plot.timeline(trace, window=(5, 6))


def test_a_step_begins_at_its_first_op_whichever_ranks_are_drawn(scene):
    scene.lane(rank=0).add(scene.compute(), (0, 0, 10 * MS))
    scene.lane(rank=1).add(scene.compute(), (40 * MS, 40 * MS, 60 * MS))
    ax = plot.timeline(frame(scene.record()), ranks=[1], step=0, window=(0.05, 0.06))
    assert ax.get_xlim() == (50, 60)


def test_timeline_writes_names_into_wide_bars_and_numbers_into_narrow_ones(trace):
    wide = [t.get_text() for t in plot.timeline(trace, ranks=[0]).texts]
    assert wide.count("a compute op") == 2
    narrow = Figure(figsize=(2.4, 3)).subplots()
    assert [t.get_text() for t in plot.timeline(trace, ranks=[0], ax=narrow).texts] == ["5", "5"]


def test_a_bar_too_narrow_to_see_has_an_edge_of_its_own_colour(scene):
    lane = scene.lane()
    lane.add(scene.compute(), (0, 0, 10**6))
    lane.add(scene.compute(), (2 * 10**6, 2 * 10**6, 2 * 10**6 + 1))
    (bars,) = plot.timeline(frame(scene.record())).collections
    assert [to_hex(edge).upper() for edge in bars.get_edgecolor()] == ["#FFFFFF", COLOURS["compute"]]


def test_timeline_of_many_ranks_has_one_row_a_rank_and_says_what_it_left_out(new_scene):
    scene = new_scene()
    for rank in range(200):
        lane = scene.lane(rank=rank)
        for k in range(3):
            lane.add(scene.compute(), (k, k, k + 1), stream=f"s{k}")
    ax = plot.timeline(frame(scene.record()))
    assert bars(ax) == {"compute": 64 * 3}
    assert ax.get_title(loc="right") == "64 of 200 ranks"
    assert 16 <= len(ax.get_yticks()) <= 32
    heights = {round(p.get_extents().y0, 2) for p in ax.collections[0].get_paths()}
    assert len(heights) == 64


def test_timeline_refuses_to_draw_nothing(trace):
    with pytest.raises(ValueError, match=r"no op of ranks \[3\] in step 1"):
        plot.timeline(trace, ranks=[3], step=1)


def test_axes_given_are_the_axes_used(trace):
    ax = Figure().subplots()
    assert plot.timeline(trace, ax=ax) is ax
    assert plot.breakdown(analysis.breakdown(trace), ax=ax) is ax


def test_breakdown_stacks_to_the_step(trace):
    ax = plot.breakdown(analysis.breakdown(trace), step=0)
    assert len(ax.containers) == 4
    top = max(bar.get_y() + bar.get_height() for container in ax.containers for bar in container)
    assert top == pytest.approx(100)
    assert [len(container) for container in ax.containers] == [2, 2, 2, 2]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0\n×8", "8\n×8"]
    by_label = {c.get_label(): to_hex(c.patches[0].get_facecolor()).upper() for c in ax.containers}
    assert by_label == {name: colour_of(name) for name in by_label}
    assert ax.get_ylabel() == "time in step 0 [ms]"


def test_breakdown_refuses_a_step_that_is_not_there(trace):
    with pytest.raises(ValueError, match="has no step 7"):
        plot.breakdown(analysis.breakdown(trace), step=7)


def test_memory_stacks_categories_of_the_fullest_rank(record):
    ax = plot.memory(analysis.memory(record), capacity=40 * 2**30)
    assert ax.get_ylabel() == "gpu memory of rank 8 [GiB]"
    assert [c.get_label() for c in ax.collections] == ["weights", "activations"]
    assert [t.get_text() for t in ax.texts] == ["peak 20 GiB", "capacity 40 GiB"]
    assert max(p.get_extents().y1 for c in ax.collections for p in c.get_paths()) == pytest.approx(20)
    assert ax.get_lines()[0].get_ydata()[0] == pytest.approx(40)


def test_memory_of_a_rank_named(record):
    ax = plot.memory(analysis.memory(record), rank=0)
    assert ax.get_ylabel() == "gpu memory of rank 0 [GiB]"
    with pytest.raises(ValueError, match="rank 0 holds nothing in nvme"):
        plot.memory(analysis.memory(record), rank=0, tier="nvme")


def test_links_draws_the_most_used():
    usage = [
        Rates(
            name=f"link {k}",
            kind="nic",
            multiplicity=1,
            capacity=100.0,
            time_ns=np.array([0, 10]),
            used=np.array([10.0 * k, 0.0]),
            users=np.array([1, 0]),
        )
        for k in range(5)
    ]
    ax = plot.links(analysis.links(usage), top=3)
    assert [bar.get_width() for bar in ax.containers[0]] == pytest.approx([40, 30, 20])
    assert [t.get_text() for t in ax.get_yticklabels()] == ["link 4", "link 3", "link 2"]
    assert ax.get_title(loc="right") == "3 of 5 resources"
    with pytest.raises(ValueError, match="no resource"):
        plot.links(analysis.links([]))


def test_links_are_labelled_with_what_they_stand_for():
    few, many = "node{0..3}/nic{0..7}.tx", "a name " * 9

    def used(k, names):
        step = {"time_ns": np.array([0, 10]), "used": np.array([10.0 * k, 0.0]), "users": np.array([1, 0])}
        return Rates(name=f"link {k}", kind="nic", multiplicity=4096, capacity=100.0, stands_for=names, **step)

    ax = plot.links(analysis.links([used(2, few), used(1, many)]))
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"{few}  ×4,096", "link 1  ×4,096"]


def test_figures_can_be_saved(trace, record, tmp_path):
    tables = analysis.breakdown(trace), analysis.memory(record)
    for name, ax in {
        "timeline": plot.timeline(trace),
        "breakdown": plot.breakdown(tables[0]),
        "memory": plot.memory(tables[1]),
    }.items():
        ax.figure.savefig(tmp_path / f"{name}.png")
        header = (tmp_path / f"{name}.png").read_bytes()[16:24]
        assert (int.from_bytes(header[:4]), int.from_bytes(header[4:])) == (1600, 900)


def test_units_of_time():
    assert [time_unit(span)[1] for span in (1, 2e3, 2e6, 2e9)] == ["ns", "µs", "ms", "s"]


def test_labels_are_thinned():
    assert list(thinned(5, 5)) == [0, 1, 2, 3, 4]
    assert list(thinned(11, 5)) == [0, 3, 6, 9]
    assert list(thinned(0, 5)) == []


def test_importing_plot_loads_no_matplotlib_and_drawing_no_pyplot():
    code = """if True:
        import sys, clustersim.plot
        assert "matplotlib" not in sys.modules and "pandas" not in sys.modules
        from clustersim.plot.canvas import axes_or_new
        axes_or_new(None)
        assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True)
