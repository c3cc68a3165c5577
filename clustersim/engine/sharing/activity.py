"""An op in progress whose rate may change while it runs."""

from __future__ import annotations

from typing import Any

from clustersim.engine.scene.signature import ONE, Signature

__all__ = ["Activity"]


class Activity:
    """One op in progress that can be re-rated, or the present phase of a collective whose phases follow one another.

    Attributes
    ----------
    owner : Lane or Rendezvous
    number : int
        which of its ops
    left : int
        work left at ``since``, of ``ONE``
    rate : int
        work a nanosecond
    cap : int
        its speed alone
    since : int
        instant of the last change of rate [ns]
    due : int
        instant at which it will end at this rate [ns]; -1 once it has
    held : int
        instant at which the clock will next look at it [ns], not after ``due``; -1 before it is on the clock
    limit : int
        resource that holds it below ``cap``, -1 when none does
    """

    __slots__ = ("cap", "demands", "due", "held", "left", "limit", "number", "owner", "rate", "signature", "since")

    def __init__(self, owner: Any, number: int, signature: Signature, cap: int, now: int) -> None:
        self.owner = owner
        self.number = number
        self.signature = signature
        self.demands = signature.demands
        self.left = ONE
        self.rate = cap
        self.cap = cap
        self.since = now
        self.limit = -1
        self.due = -1
        self.held = -1
