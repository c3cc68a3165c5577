"""A number in a field of a CSV, or what is wrong with it."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Misread", "number", "whole"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Misread:
    """Why a field is not the number that its column asks for.

    Parameters
    ----------
    rule : str
        what would have been legal
    nearest : int, optional
        the legal number closest to the field; None where it is no number at all
    """

    rule: str
    nearest: int | None = None


def number(text: str) -> float | None:
    """A finite number, a whole one exactly; None where the field is none."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def whole(text: str, *, least: int, most: int) -> int | Misread:
    """A whole number from ``least`` to ``most``, written in any way: ``8``, ``8.0``, ``8e0``.

    Examples
    --------
    >>> whole("8e0", least=1, most=16)
    8
    >>> whole("17", least=1, most=16)
    Misread(rule='must be a whole number from 1 to 16', nearest=16)
    """
    rule = f"must be {least} or {most}" if most == least + 1 else f"must be a whole number from {least} to {most}"
    value = number(text)
    if value is None:
        try:
            beyond = float(text)
        except ValueError:
            return Misread(rule=rule)
        return Misread(rule=rule, nearest=None if math.isnan(beyond) else least if beyond < 0 else most)
    if least <= value <= most and value == int(value):
        return int(value)
    return Misread(rule=rule, nearest=min(max(round(value), least), most))
