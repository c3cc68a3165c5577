"""Limits that end a run early, with what it has so far."""

from __future__ import annotations

import time
from dataclasses import dataclass

__all__ = ["LimitReached", "Limits"]


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

    def check(self, num_events: int, now_ns: int, wall_end: float) -> None:
        """Raise :class:`LimitReached` when one is passed; real time is looked at every 256 instants."""
        if num_events >= self.num_events:
            raise LimitReached(f"limits.num_events: {num_events} instants handled")
        if now_ns > self.simulated_s * 1e9:
            raise LimitReached(f"limits.simulated_s: {now_ns / 1e9:g} s simulated")
        if not num_events & 255 and time.monotonic() > wall_end:
            raise LimitReached(f"limits.wall_s: {self.wall_s:g} s of real time used")
