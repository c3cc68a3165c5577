"""Kinds of value that a setting takes: what is legal, and how a text becomes one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from clustersim.faults import nearest_name
from clustersim.units import UnitError, parse

__all__ = [
    "Bytes",
    "Factors",
    "Flag",
    "Name",
    "Names",
    "Number",
    "Quantity",
    "Refused",
    "Value",
    "Whole",
    "Wholes",
    "Word",
    "read_text",
]


class Refused(ValueError):  # noqa: N818 - a verdict on a value, turned into a fault by the one who knows its key
    """A value that is not legal.

    Parameters
    ----------
    rule : str
        what would have been, as the end of a sentence
    nearest : object, optional
        the closest legal value
    """

    def __init__(self, rule: str, nearest: object = None) -> None:
        self.rule, self.nearest = rule, nearest
        super().__init__(rule)


class Value(Protocol):
    """One kind of value."""

    @property
    def legal(self) -> str:
        """Legal values in a few words."""

    @property
    def some(self) -> object:
        """A legal value, for what is near none; None where there is none in general."""

    def read(self, value: object) -> Any:
        """``value`` as the run takes it; :class:`Refused` when it is not legal."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from ``low`` to ``high``."""

    low: int
    high: int

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return f"{self.low} to {self.high}"

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return self.low

    def read(self, value: object) -> int:
        """The number."""
        if isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high:
            return value
        nearest = None
        if isinstance(value, int | float) and not math.isnan(value):
            nearest = round(min(max(value, self.low), self.high))
        raise Refused(f"must be a whole number from {self.low} to {self.high}", nearest)


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number from ``low`` to ``high``; ``low`` itself is out when ``above``."""

    low: float
    high: float = math.inf
    above: bool = False

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        start = f"above {self.low:g}" if self.above else f"from {self.low:g}"
        return start if self.high == math.inf else f"{start} to {self.high:g}"

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return min(self.high, self.low + 1) if self.above else self.low

    def read(self, value: object) -> float:
        """The number."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if is_number and self.low <= value <= self.high and not (self.above and value == self.low):  # type: ignore[operator]
            return value  # type: ignore[return-value]
        beyond = is_number and value > self.high  # type: ignore[operator]
        nearest = self.high if beyond else None if self.above else self.low
        raise Refused(f"must be a finite number {self.legal}", nearest)


@dataclass(frozen=True, slots=True)
class Bytes:
    """An amount of bytes: a whole number, or a text with a unit as ``"100 MB"``."""

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return "100 MB, 64 MiB"

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return "100 MB"

    def read(self, value: object) -> int:
        """The amount [B]."""
        try:
            nbytes = round(parse(value, "B"))  # type: ignore[arg-type]
        except UnitError as error:
            raise Refused(error.rule, error.nearest) from None
        if nbytes < 1:
            raise Refused("must be at least 1 B", 1)
        return nbytes


@dataclass(frozen=True, slots=True)
class Quantity:
    """An amount of ``unit``: a number, or a text with a unit as ``sample``."""

    unit: str
    sample: str

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return self.sample

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return self.sample

    def read(self, value: object) -> float:
        """The amount in ``unit``."""
        try:
            return parse(value, self.unit)  # type: ignore[arg-type]
        except UnitError as error:
            raise Refused(error.rule, error.nearest) from None


@dataclass(frozen=True, slots=True)
class Wholes:
    """A list of one to ``most`` whole numbers from ``low`` to ``high``."""

    low: int
    high: int
    most: int

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return f"1 to {self.most} of {self.low} to {self.high}"

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return None

    def read(self, value: object) -> tuple[int, ...]:
        """The numbers."""
        one = Whole(self.low, self.high)
        if not isinstance(value, list | tuple) or not 1 <= len(value) <= self.most:
            raise Refused(f"must be a list of {self.legal}")
        try:
            return tuple(one.read(item) for item in value)
        except Refused:
            raise Refused(f"must be a list of {self.legal}") from None


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return "true, false"

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return True

    def read(self, value: object) -> bool:
        """The flag."""
        if isinstance(value, bool):
            return value
        raise Refused("must be true or false", bool(value) if value in (0, 1) else None)


@dataclass(frozen=True, slots=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return ", ".join(self.words)

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return self.words[0]

    def read(self, value: object) -> str:
        """The word."""
        if value in self.words:
            return str(value)
        raise Refused(f"must be one of {self.legal}", nearest_name(str(value), self.words))


@dataclass(frozen=True, slots=True)
class Name:
    """The name of something that is looked up later: a card, a file, a builder."""

    of: str

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return self.of

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return None

    def read(self, value: object) -> str:
        """The name."""
        if isinstance(value, str) and value.strip():
            return value
        raise Refused(f"must be {self.of}")


@dataclass(frozen=True, slots=True)
class Names:
    """A list of names; of ``words`` only, where these are given."""

    of: str
    words: tuple[str, ...] = ()

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return self.of

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return f"[{', '.join(self.words)}]" if self.words else None

    def read(self, value: object) -> tuple[str, ...]:
        """The names."""
        named = (value,) if isinstance(value, str) else value
        if not isinstance(named, Sequence) or not all(isinstance(name, str) for name in named):
            raise Refused(f"must be {self.of}", f"[{', '.join(self.words)}]" if self.words else None)
        for name in named:
            if self.words and name not in self.words:
                near = [word if word in self.words else nearest_name(word, self.words) for word in named]
                legal = self.words if None in near else [word for word in near if word]
                raise Refused(f"must be {self.of}", f"[{', '.join(legal)}]")
        return tuple(named)


@dataclass(frozen=True, slots=True)
class Factors:
    """A mapping to positive factors, from rank numbers or from names."""

    of: Literal["rank", "link"]

    @property
    def legal(self) -> str:
        """Legal values in a few words."""
        return "{37: 1.3}" if self.of == "rank" else "{node0/nic1.tx: 0.5}"

    @property
    def some(self) -> object:
        """A legal value; None where there is none in general."""
        return self.legal

    def read(self, value: object) -> dict[int, float] | dict[str, float]:
        """The mapping."""
        rule = f"must map {self.of}s to positive, finite factors"
        if not isinstance(value, Mapping):
            raise Refused(rule, self.legal)
        for factor in value.values():
            if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < math.inf:
                raise Refused(rule, self.legal)
        if self.of == "link":
            return {str(name): float(factor) for name, factor in value.items()}
        if not all(str(rank).isdecimal() for rank in value):
            raise Refused(rule, self.legal)
        return {int(rank): float(factor) for rank, factor in value.items()}


def read_text(text: str) -> Any:
    """A value as people type it: ``8``, ``0.5``, ``true``, ``[a, b]``, ``{37: 1.3}``; else the text itself.

    Names in lists and mappings need no quotes; what stands in a mapping is parted by ``:`` or ``=``.
    """
    text = text.strip()
    inner = text[1:-1]
    if text[:1] + text[-1:] == "[]":
        return [read_text(item) for item in inner.split(",") if item.strip()]
    if text[:1] + text[-1:] == "{}":
        pairs = (_pair(item) for item in inner.split(",") if item.strip())
        return {str(read_text(name)): read_text(value) for name, value in pairs}
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return inner
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _pair(item: str) -> tuple[str, str]:
    at = max(item.rfind(":"), item.rfind("="))
    return (item[:at], item[at + 1 :]) if at > 0 else (item, "")
