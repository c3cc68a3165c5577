"""Predicted over measured, drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from clustersim import plot
from clustersim.plot.palette import COLOURS

TABLE = pd.DataFrame(
    {
        "status": ["predicted", "predicted", "predicted", "refused", "predicted"],
        "communication": ["x", "x", "y", "x", "x"],
        "collective": ["all_reduce", "all_gather", "all_reduce", "all_reduce", "all_reduce"],
        "nbytes": [1e3, 1e6, 1e9, 1e3, 1e4],
        "measured": [10.0, 10.0, 10.0, 10.0, 10.0],
        "predicted": [11.0, 9.0, 40.0, np.nan, 2.0],
        "in_domain": [True, True, True, False, False],
    }
)


def points(ax):
    return {c.get_label(): c.get_offsets().tolist() for c in ax.collections}


def test_a_panel_a_family_and_a_point_a_predicted_row():
    first, second = plot.accuracy(TABLE)
    assert points(first) == {
        "all_reduce": [[1e3, 1.1]],
        "all_gather": [[1e6, 0.9]],
        "all_reduce, out of domain": [[1e4, 0.2]],
    }
    assert points(second) == {"all_reduce": [[1e9, 4]]}
    assert [ax.get_title(loc="left") for ax in (first, second)] == ["x: 3 rows", "y: 1 row"]


def test_colours_are_those_of_collectives_and_hollow_is_out_of_domain():
    ax = plot.accuracy(TABLE)[0]
    drawn = {c.get_label(): c for c in ax.collections}
    assert to_hex(drawn["all_gather"].get_facecolor()[0]).upper() == COLOURS["all_gather"]
    hollow = drawn["all_reduce, out of domain"]
    assert len(hollow.get_facecolor()) == 0
    assert to_hex(hollow.get_edgecolor()[0]).upper() == COLOURS["all_reduce"]


def test_panels_share_their_limits_and_show_every_point():
    axes = plot.accuracy(TABLE)
    assert len({(ax.get_xlim(), ax.get_ylim()) for ax in axes}) == 1
    (left, right), (low, high) = axes[0].get_xlim(), axes[0].get_ylim()
    assert left < 1e3 < 1e9 < right
    assert low < 0.2 < 4 < high


def test_one_legend_names_all():
    figure = plot.accuracy(TABLE)[0].get_figure(root=True)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["all_gather", "all_reduce", "all_reduce, out of domain"]


def test_into_axes_of_ones_own():
    axes = Figure().subplots(1, 3).tolist()
    assert plot.accuracy(TABLE, axes, by="collective") == axes[:2]
    with pytest.raises(ValueError, match="too few"):
        plot.accuracy(TABLE, axes[:1])


def test_nothing_predicted_is_not_drawn():
    with pytest.raises(ValueError, match="no row was predicted"):
        plot.accuracy(TABLE[TABLE["status"] == "refused"])


@pytest.mark.parametrize("count", [1, 3, 4, 7])
def test_a_grid_without_empty_panels(count):
    table = pd.concat([TABLE[:1].assign(communication=str(k)) for k in range(count)], ignore_index=True)
    axes = plot.accuracy(table)
    assert len(axes) == count == len(axes[0].get_figure(root=True).axes)
