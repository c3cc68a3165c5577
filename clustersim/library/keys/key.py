"""A setting of a run: what it takes, what it means and where its value comes from."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.library.values import Value, Whole

__all__ = ["DEGREE", "MUST", "TOPOLOGY", "Key"]

MUST = "must be given"
TOPOLOGY = "the topology's own"
"""Where a value comes from that a topology card has."""
DEGREE = Whole(1, 2**20)
"""Ranks along an axis of a mesh."""


@dataclass(frozen=True, slots=True)
class Key:
    """One setting.

    Parameters
    ----------
    value : Value
        what it takes
    meaning : str
    default : object
        when it is not given; None where ``otherwise`` says what then
    otherwise : str
        where the value comes from when there is no default
    unit : str
    usual : object
        a legal value for those who gave one that is near none
    """

    value: Value
    meaning: str
    default: object = None
    otherwise: str = "none"
    unit: str = ""
    usual: object = None

    @property
    def example(self) -> object:
        """A legal value; None where there is none in general."""
        found = self.default if self.usual is None else self.usual
        return self.value.some if found is None else found

    @property
    def required(self) -> bool:
        """It must be given, in jobs of its workload."""
        return self.otherwise == MUST
