"""What is wrong with an input: every fault at once, each with its place, its rule and the nearest legal value."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["BadInput", "Fault", "collect", "nearest_name", "unfit_call"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One fault of an input.

    Parameters
    ----------
    key : str
        dotted path of the value inside the file or the command line, such as ``plan.tp``
    value : object
        what was given
    rule : str
        what would have been legal, as the end of a sentence: ``must divide the 32 attention heads``
    nearest : object, optional
        the legal value closest to the one given
    file : str
        the file it stands in; empty for the command line or a Python call
    """

    key: str
    value: object
    rule: str
    nearest: object = None
    file: str = ""

    def __str__(self) -> str:
        place = f"{self.file}: {self.key}" if self.file else self.key
        hint = "" if self.nearest is None else f"; nearest: {self.nearest}"
        return f"{place}: {self.value!r} {self.rule}{hint}"


class BadInput(ValueError):  # noqa: N818 - the field's users read it as a sentence: bad input
    """An input that cannot be simulated; carries every fault found, not just the first.

    Parameters
    ----------
    faults : Iterable[Fault]
        at least one
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))

    def __reduce__(self) -> tuple[type[BadInput], tuple[tuple[Fault, ...]]]:
        return BadInput, (self.faults,)


@contextmanager
def collect(faults: list[Fault]) -> Iterator[None]:
    """Note the faults of an input that is bad in ``faults`` and go on, to find the others too."""
    try:
        yield
    except BadInput as error:
        faults += error.faults


def unfit_call(key: str, called: Callable[..., Any], *arguments: object) -> Fault | None:
    """The fault of a user's own callable that does not take what it will be given; None when it does.

    Parameters
    ----------
    key : str
        of the setting that it was given as
    called : Callable
    arguments : object
        what it will be given
    """
    try:
        inspect.signature(called).bind(*arguments)
    except TypeError as error:
        name = getattr(called, "__name__", "own")
        return Fault(key=key, value=name, rule=f"must take {len(arguments)} arguments: {error}")
    except ValueError:  # built in, and without a signature to look at
        return None
    return None


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that looks most like ``name``; None when none does."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return close[0] if close else None
