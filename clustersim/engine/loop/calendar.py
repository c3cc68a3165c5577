"""What the loop looks at, and when: SimPy's clock in whole nanoseconds, one event for each instant."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import simpy
from simpy.events import NORMAL, URGENT, Event, EventPriority

from clustersim.engine.sharing.activity import Activity

if TYPE_CHECKING:
    from clustersim.engine.loop.lane import Lane
    from clustersim.engine.strands.stretch import Stretch

__all__ = ["Calendar"]

_LAST = EventPriority(2)
"""After all that happens at an instant."""

_NEVER = 1 << 62
"""An instant [ns] that no run reaches: 146 years."""


class _Instant(Event):
    """An instant at which something happens: one event for all of it. It has succeeded before it is scheduled."""

    _ok = True
    _value = None

    def __init__(self, callbacks: list[Any]) -> None:  # one of these an instant: nothing else is set
        self.callbacks = callbacks


class Calendar:
    """The instants to come.

    Parameters
    ----------
    handle : Callable[[Event], None]
        called at each of them

    Attributes
    ----------
    env : simpy.Environment
        the clock [ns]
    planned : dict[int, list[tuple[Lane, int]]]
        by instant, plain ops that start then, and ends that give back to pools
    due : dict[int, list[Activity | Stretch]]
        by instant, what will end then unless its speed changes
    """

    __slots__ = ("_callbacks", "due", "env", "planned")

    def __init__(self, handle: Callable[[Event], None]) -> None:
        self.env = simpy.Environment()
        self.planned: dict[int, list[tuple[Lane, int]]] = {}
        self.due: dict[int, list[Activity | Stretch]] = {}
        self._callbacks: list[Any] = [handle]

    def plan(self, lane: Lane, op: int, then: int, now: int) -> None:
        """Look at an op at an instant, now or later."""
        if then in self.planned:
            self.planned[then].append((lane, op))
        else:
            self.planned[then] = [(lane, op)]
            if then not in self.due:
                self.env.schedule(_Instant(self._callbacks), NORMAL, then - now)

    def push(self, activity: Activity | Stretch, now: int, took: int) -> None:
        """Expect the end of an activity ``took`` [ns] from now; one that is looked at before is left there."""
        then = now + took
        if then > _NEVER:
            then = _NEVER
        activity.due = then
        if now < activity.held <= then:
            return
        activity.held = then
        due = self.due
        if then in due:
            due[then].append(activity)
        else:
            due[then] = [activity]
            if then not in self.planned and then != _NEVER:
                self.env.schedule(_Instant(self._callbacks), NORMAL, took)

    def wake(self, now: int) -> None:
        """Have an instant handled at ``now``, after the event in hand."""
        self.env.schedule(_Instant(self._callbacks), delay=now - self.env.now)

    def call(self, callback: Callable[[Event], None], when: int, *, last: bool = False) -> None:
        """Call back at an instant [ns], before all else there, or after it where ``last``."""
        self.env.schedule(_Instant([callback]), _LAST if last else URGENT, when - self.env.now)

    @property
    def stuck(self) -> list[Activity]:
        """Ops in progress that a resource holds at next to nothing."""
        return [a for a in self.due.get(_NEVER, ()) if type(a) is Activity and a.due == _NEVER]

    def close(self) -> None:
        """Undo references in a circle."""
        self._callbacks.clear()
