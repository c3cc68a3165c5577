"""Settings that are numbers: whole ones, lists of them, and finite ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

from clustersim.library.values.value import Refused

__all__ = ["Number", "Whole", "Wholes"]


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
