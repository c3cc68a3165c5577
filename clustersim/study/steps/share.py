"""Shares of a peak, as rows publish them."""

from __future__ import annotations

import re

__all__ = ["NARROW", "SHARE"]

SHARE = re.compile(r"(?P<of>percent|%|fraction)(?: of (?P<peak>[\d.]+) TFLOP/s)?")
"""A unit that is a share of a peak; where none is told, of the GPU's dense 16-bit peak."""

NARROW = re.compile(r"fp8|float8|fp4|float4|int8", re.I)
"""Precisions of which some count shares of their own peak, some of that of 16 bits."""
