"""Limits that end a run early, with what it has so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["LimitReached", "Limits", "Watch"]

_LOOK_EVERY = 256
"""Instants between two looks at the clock on the wall: some milliseconds."""


class LimitReached(RuntimeError):  # noqa: N818 - what happened, not a fault
    """A run was stopped by one of its limits; the message names it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """When to stop.

    Parameters
    ----------
    num_events : int
        instants to handle at most
    simulated_s : float
        simulated time at most [s]
    wall_s : float
        real time at most [s]
    """

    num_events: float = float("inf")
    simulated_s: float = float("inf")
    wall_s: float = float("inf")

    def __post_init__(self) -> None:
        for name in ("num_events", "simulated_s", "wall_s"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}: {getattr(self, name)} must not be negative")

    @classmethod
    def parse(cls, given: Mapping[str, float]) -> Limits:
        """From a mapping as ``--set limits.*`` gives it.

        Parameters
        ----------
        given : Mapping[str, float]
            field -> limit

        Raises
        ------
        BadInput
            with every name that is no limit, and every limit that is no number or negative
        """
        faults = []
        for key, limit in given.items():
            if key not in cls.__dataclass_fields__:
                nearest = nearest_name(key, cls.__dataclass_fields__)
                faults.append(Fault(key=f"limits.{key}", value=limit, rule="is no limit", nearest=nearest))
            elif isinstance(limit, bool) or not isinstance(limit, int | float) or not limit >= 0:
                faults.append(Fault(key=f"limits.{key}", value=limit, rule="must be a number, not negative", nearest=0))
        if faults:
            raise BadInput(faults)
        return cls(**given)


class Watch:
    """Looks every few instants whether a run has used up its limits, and tells how far it is.

    Parameters
    ----------
    limits : Limits
    progress : callable, optional
        called at each look with the simulated time [ns]

    Attributes
    ----------
    next_look : float
        number of instants handled at which to look next
    """

    __slots__ = ("_limits", "_progress", "_wall_end", "next_look")

    def __init__(self, limits: Limits, progress: Callable[[int], None] | None = None) -> None:
        self._limits = limits
        self._progress = progress
        self._wall_end = time.monotonic() + limits.wall_s
        self.next_look = min(_LOOK_EVERY, limits.num_events)

    def look(self, num_events: int, now: int) -> None:
        """Raise :class:`LimitReached` when the instants or the real time are used up; ``now`` in [ns]."""
        self.next_look = min(num_events + _LOOK_EVERY, self._limits.num_events)
        if num_events >= self._limits.num_events:
            raise LimitReached(f"limits.num_events: {num_events} instants handled")
        if time.monotonic() > self._wall_end:
            raise LimitReached(f"limits.wall_s: {self._limits.wall_s:g} s of real time used")
        if self._progress is not None:
            self._progress(now)
