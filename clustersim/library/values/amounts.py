"""Settings that are amounts with a unit."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.library.values.value import Refused
from clustersim.units import UnitError, parse

__all__ = ["Bytes", "Quantity"]


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
