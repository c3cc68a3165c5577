"""Colours that everybody can tell apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from clustersim.collective.bound import KINDS
from clustersim.plot.palette import COLOURS, SERIES, colour_of, ink_on

TIMES = ("compute", "optimizer", "tp", "cp", "ep", "pp", "dp", "copy", "storage", "host", "bubble", "wait")
BYTES = ("weights", "gradients", "optimizer", "activations", "communication", "workspace", "context")
# Machado, Oliveira and Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency",
# severity 1.0, on linear RGB
VISION = {
    "normal": np.eye(3),
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
}


def lab(colour, vision):
    """CIE L*a*b* of a colour as seen, white point D65."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(VISION[vision]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ seen / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("names", [TIMES, BYTES, KINDS], ids=["times", "bytes", "collectives"])
def test_every_two_of_a_figure_stay_apart(names, vision):
    """A difference of 20 in L*a*b* is many times what is just noticeable (2.3)."""
    for a, b in combinations(names, 2):
        assert np.linalg.norm(lab(COLOURS[a], vision) - lab(COLOURS[b], vision)) > 20, (a, b)


@pytest.mark.parametrize("vision", VISION)
def test_every_two_of_a_series_stay_apart(vision):
    for a, b in combinations(SERIES, 2):
        assert np.linalg.norm(lab(a, vision) - lab(b, vision)) > 20, (a, b)


def test_classes_have_the_colour_of_their_category():
    assert colour_of("exposed_comm.dp") == colour_of("dp") == COLOURS["dp"]
    assert colour_of("exposed_copy") == COLOURS["copy"]


def test_an_unknown_category_always_has_the_same_colour():
    assert colour_of("mine") == colour_of("mine")
    assert colour_of("mine") not in COLOURS.values()


def test_ink_can_be_read():
    assert ink_on("#FFFFFF") == ink_on(COLOURS["cp"]) == ink_on(COLOURS["bubble"]) == "black"
    assert ink_on("#000000") == ink_on(COLOURS["compute"]) == ink_on(COLOURS["optimizer"]) == "white"
