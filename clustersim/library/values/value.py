"""A kind of value that a setting takes, and the refusal of what is none of it."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["Refused", "Value"]


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
