"""Settings that map ranks or links to factors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clustersim.library.values.value import Refused

__all__ = ["Factors"]


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
