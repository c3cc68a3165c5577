"""Predictions against measurements, drawn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from clustersim import plot
from clustersim.plot.palette import COLOURS, SERIES

TABLE = pd.DataFrame(
    {
        "status": ["predicted", "predicted", "predicted", "refused", "predicted"],
        "family": ["a", "b", "a", "a", "b"],
        "unit": ["ms", "s", "TFLOP/s (model FLOP)", "s", "TFLOP/s (hardware FLOP)"],
        "measured": [10.0, 0.2, 100.0, 10.0, 200.0],
        "predicted": [11.0, 0.1, 110.0, np.nan, 150.0],
        "in_domain": [True, True, True, False, False],
    }
)


def points(ax):
    return {tuple(np.round(point, 9)) for c in ax.collections[1:] for point in c.get_offsets().tolist()}


def test_a_panel_a_unit_and_a_point_a_predicted_row():
    times, rates = plot.measured(TABLE)
    assert points(times) == {(0.01, 0.011), (0.2, 0.1)}
    assert points(rates) == {(100.0, 110.0), (200.0, 150.0)}
    assert [ax.get_title(loc="left") for ax in (times, rates)] == ["s: 2 rows", "TFLOP/s: 2 rows"]
    assert [ax.get_xlabel() for ax in (times, rates)] == ["measured [s]", "measured [TFLOP/s]"]


def test_axes_are_alike_and_show_every_point():
    for ax in plot.measured(TABLE):
        assert ax.get_xlim() == ax.get_ylim()
        low, high = ax.get_xlim()
        assert all(low < value < high for point in points(ax) for value in point)


def test_a_family_has_its_colour_and_hollow_is_out_of_domain():
    times, rates = plot.measured(TABLE)
    first, second = times.collections[1:]
    assert [to_hex(c.get_facecolor()[0]).upper() for c in (first, second)] == list(SERIES[:2])
    hollow = rates.collections[2]
    assert len(hollow.get_facecolor()) == 0
    assert to_hex(hollow.get_edgecolor()[0]).upper() == SERIES[1]


def test_a_collective_has_its_own_colour():
    ax = plot.measured(TABLE[:1].assign(family="all_gather"))[0]
    assert to_hex(ax.collections[1].get_facecolor()[0]).upper() == COLOURS["all_gather"]


def test_one_legend_names_each_family_once():
    (legend,) = plot.measured(TABLE)[0].get_figure(root=True).legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def test_into_axes_of_ones_own():
    axes = Figure().subplots(1, 3).tolist()
    assert plot.measured(TABLE, axes) == axes[:2]
    with pytest.raises(ValueError, match="too few"):
        plot.measured(TABLE, axes[:1])


def test_nothing_predicted_is_not_drawn():
    with pytest.raises(ValueError, match="no row was predicted"):
        plot.measured(TABLE[TABLE["status"] == "refused"])
