"""Units at the edge, SI inside: ``"400 Gb/s"`` in a card is ``5e10`` [B/s] in the code.

A field of a dataclass names its unit once, as ``Annotated[float, Unit("B/s")]``; the loader, the documentation and
:func:`show` read that one marker. The package computes with bare floats and ints in s, B, B/s, FLOP and FLOP/s.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

__all__ = ["Unit", "UnitError", "parse", "show"]

_DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_LARGE = {p: f for p, f in _DECIMAL.items() if f >= 1}
_SMALL = {p: f for p, f in _DECIMAL.items() if f <= 1}
_PREFIXES = {
    "s": _SMALL,
    "B": _LARGE | _BINARY,
    "B/s": _LARGE | _BINARY,
    "FLOP": _LARGE,
    "FLOP/s": _LARGE,
    "W": _DECIMAL,
    "Hz": _LARGE,
}
_DIMENSIONS = {
    "s": "a time",
    "B": "an amount of bytes",
    "B/s": "a rate",
    "FLOP": "an amount of work",
    "FLOP/s": "a rate of work",
    "W": "a power",
    "Hz": "a frequency",
    "": "a pure number",
}

# What cards are written in, as text -> (factor, SI unit). It keeps pint, which takes 0.2 s to import, out of an
# ordinary run; a test holds it against pint.
_COMMON = {f"{p}{unit}": (f, unit) for unit, prefixes in _PREFIXES.items() for p, f in prefixes.items()} | {
    f"{p}b/s": (f / 8, "B/s") for p, f in _LARGE.items()
}
_QUANTITY = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*?)\s*")

# Own definitions, not pint's: its registry reads Gb as gigagilbert and GT as gigatesla, and knows no FLOP.
_DEFINITIONS = """
nano- = 1e-9 = n-
micro- = 1e-6 = u- = µ- = μ-
milli- = 1e-3 = m-
kilo- = 1e3 = k- = K-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
peta- = 1e15 = P-
exa- = 1e18 = E-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
tebi- = 2**40 = Ti-
pebi- = 2**50 = Pi-
second = [time] = s = sec
minute = 60 * second = min
hour = 60 * minute = h
byte = [information] = B
bit = byte / 8 = b
byte_per_second = byte / second = Bps
bit_per_second = bit / second = bps
flop = [computation] = FLOP
flop_per_second = flop / second = FLOPS
watt = [power] = W
hertz = 1 / second = Hz
"""


class UnitError(ValueError):
    """A text that is not the quantity asked for.

    Parameters
    ----------
    value : object
        what was given
    rule : str
        what would have been legal, as the end of a sentence: ``is not a rate [B/s]``
    nearest : str, optional
        the closest legal text
    """

    def __init__(self, value: object, rule: str, nearest: str | None = None) -> None:
        self.value, self.rule, self.nearest = value, rule, nearest
        super().__init__(f"{value!r} {rule}" + (f"; nearest: {nearest}" if nearest else ""))

    def __reduce__(self) -> tuple[type[UnitError], tuple[object, str, str | None]]:
        return UnitError, (self.value, self.rule, self.nearest)


@dataclass(frozen=True, slots=True)
class Unit:
    """The SI unit of an annotated number: one of s, B, B/s, FLOP, FLOP/s, W, Hz, or empty for a pure number."""

    symbol: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> dict[str, Any]:
        """Let the loader parse a marked field; a plain mapping, so that nothing here imports the validator."""
        convert = partial(_parse_whole, unit=self.symbol) if source is int else partial(parse, unit=self.symbol)
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": convert},
            "schema": handler(source),
        }


def parse(value: str | float, unit: str) -> float:
    """Read a quantity as a number in SI.

    Parameters
    ----------
    value : str, int or float
        ``"400 Gb/s"``, ``"80 GiB"``, ``"5 us"``; a bare number is in SI already
    unit : str
        the SI unit wanted, as in :class:`Unit`

    Returns
    -------
    float
        in ``unit``

    Raises
    ------
    UnitError
        if the text is no quantity, has another dimension, or is negative, infinite or not a number

    Examples
    --------
    >>> parse("400 Gb/s", "B/s")
    50000000000.0
    >>> parse("400 GB", "B/s")
    Traceback (most recent call last):
    clustersim.units.UnitError: '400 GB' is not a rate [B/s]; nearest: 400 GB/s
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise UnitError(value, f"is not {_wanted(unit)}")
    number, symbol = _split(value, unit) if isinstance(value, str) else (float(value), "")
    if not symbol:
        factor = 1.0
    elif symbol in _COMMON and _COMMON[symbol][1] == unit:
        factor = _COMMON[symbol][0]
    else:
        factor = _factor_by_pint(value, symbol, unit)
    result = number * factor if factor >= 1 else number / round(1 / factor)  # 5 / 1e6 is 5e-6; 5 * 1e-6 is not
    if not 0 <= result < math.inf:
        raise UnitError(value, f"must be {_wanted(unit)}, zero or positive, and finite")
    return result


def show(value: float, unit: str) -> str:
    """Write a number in SI with the prefix that people use, to four digits.

    Examples
    --------
    >>> show(3.35e12, "B/s")
    '3.35 TB/s'
    """
    prefixes = {p: f for p, f in _PREFIXES.get(unit, {"": 1.0}).items() if p not in _BINARY}
    largest = list(prefixes)[-1]
    prefix = next((p for p, f in prefixes.items() if abs(_round(value / f)) < 1000), largest) if value else ""
    scaled = value / prefixes[prefix]
    digits = f"{scaled:.0f}" if abs(scaled) >= 1e4 else f"{_round(scaled):g}"
    return f"{digits} {prefix}{unit}".rstrip()


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def _parse_whole(value: str | float, unit: str) -> int:
    """:func:`parse` for a field of whole numbers: bytes are counted."""
    return round(parse(value, unit))


def _wanted(unit: str) -> str:
    return f"{_DIMENSIONS.get(unit, 'a quantity')} [{unit}]" if unit else _DIMENSIONS[""]


def _split(text: str, unit: str) -> tuple[float, str]:
    """Number and unit of a quantity."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise UnitError(text, f"is not {_wanted(unit)}")
    return float(match[1]), match[2]


def _factor_by_pint(value: object, symbol: str, unit: str) -> float:
    """SI units in one ``symbol``, for the spellings that the table of common ones lacks."""
    import pint

    try:
        given = _registry().parse_units(symbol)
        return float(_registry().Quantity(1.0, given).to(unit or "dimensionless").magnitude)
    except pint.DimensionalityError:
        raise UnitError(value, f"is not {_wanted(unit)}", _nearest(value, symbol, unit)) from None
    except Exception:  # pint raises tokenizer, type and attribute errors of its own on text that is no unit
        rule = f"is not {_wanted(unit)}: unknown unit {symbol!r}"
        raise UnitError(value, rule, _nearest(value, symbol, unit)) from None


def _nearest(value: object, symbol: str, unit: str) -> str:
    """The same number with a legal unit: one that differs in capitals only, else one with the same prefix."""
    number = str(value).strip().removesuffix(symbol).strip()
    folded = [s for s, (_, u) in _COMMON.items() if u == unit and s.casefold() == symbol.casefold()]
    if folded:
        return f"{number} {max(folded, key=lambda s: sum(a == b for a, b in zip(s, symbol, strict=True)))}"
    prefix = max((p for p in _PREFIXES.get(unit, {}) if symbol.startswith(p) and symbol != p), key=len, default="")
    return f"{number} {prefix}{unit}".rstrip()


@cache
def _registry() -> Any:
    """A pint registry of the units of this field only; built once, in 2 ms."""
    import pint

    registry: Any = pint.UnitRegistry(None, cache_folder=None)
    registry.load_definitions(_DEFINITIONS.strip().splitlines())
    return registry
