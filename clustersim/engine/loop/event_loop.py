"""The event loop: each instant handled whole.

At an instant all completions are collected first, then what they make ready, then the grants of pools in key order;
this repeats until the instant is quiet, and then every touched component of the shared resources is solved once. So the
order in which events were inserted never matters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy.events import Event

from clustersim.engine.limits import Watch
from clustersim.engine.loop.activities import Activities
from clustersim.engine.loop.calendar import Calendar
from clustersim.engine.loop.end_code import COLLECTIVE, LATE, POOLED, STRUNG
from clustersim.engine.loop.history import History
from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.ready import Ready
from clustersim.engine.loop.stores import Stores
from clustersim.engine.loop.stretches import Stretches
from clustersim.engine.scene.scene import Scene
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.sharing.sharing import Sharing
from clustersim.engine.strands.stretch import Stretch

__all__ = ["EventLoop", "Shuffle"]

Shuffle = Callable[[list[Any]], None]


class EventLoop:
    """Plays instant after instant.

    Parameters
    ----------
    scene : Scene
    watch : Watch
        stops it at a limit
    shuffle : Shuffle, optional
        permutes a list in place: tests use it to show that insertion order does not matter

    Attributes
    ----------
    calendar : Calendar
    ready : Ready
    stores : Stores
    sharing : Sharing
    history : History
    activities : Activities
    stretches : Stretches
    cancelled : set[Lane]
        lanes of which nothing starts any more
    num_events : int
        instants handled
    handled : int
        the last of them [ns]; -1 before
    """

    def __init__(self, scene: Scene, watch: Watch, shuffle: Shuffle | None = None) -> None:
        self.calendar = Calendar(self._handle)
        self.ready = Ready(self.calendar)
        self.stores = Stores(scene.store_capacity)
        self.sharing = Sharing(scene.capacity)
        self.history = History()
        self.activities = Activities(self.calendar, self.ready, self.stores, self.sharing, self.history)
        self.stretches = Stretches(self.calendar, self.ready, self.activities, self.history)
        self.cancelled: set[Lane] = set()
        self.num_events = 0
        self.handled = -1
        self._watch = watch
        self._shuffle = shuffle

    def _handle(self, _: Event) -> None:
        """Play the present instant."""
        now: int = self.calendar.env.now  # type: ignore[assignment]  # whole nanoseconds throughout
        self.num_events += 1
        self.handled = now
        ready, activities, stretches = self.ready, self.activities, self.stretches
        planned, due, late = self.calendar.planned, self.calendar.due, ready.late
        shuffle = self._shuffle
        while True:
            come = planned.pop(now, None)
            if come is not None:
                if shuffle is not None:
                    shuffle(come)
                for lane, j in come:
                    if self.cancelled and lane in self.cancelled:
                        continue
                    if lane.end[j] == now:
                        self.stores.give(lane, j)
                        ready.release(lane, j, now, now)
                    elif lane.ns[j] in LATE:
                        late.append((lane, j))
                    else:
                        ready.starting.append((lane, j))
            finished = due.pop(now, None) if due else None
            if finished is not None:
                if shuffle is not None:
                    shuffle(finished)
                for activity in finished:
                    if activity.due == now:
                        activity.due = -1
                        if isinstance(activity, Stretch):
                            stretches.end(activity, now)
                        else:
                            activities.end(activity, now)
                    elif activity.due > now and activity.held == now:  # it was slowed since
                        self.calendar.push(activity, now, activity.due - now)
            if ready.starting:
                starting, ready.starting = ready.starting, []
                if shuffle is not None:
                    shuffle(starting)
                for lane, j in starting:
                    if lane.ns[j] == COLLECTIVE:  # inlined: the most frequent of them
                        meeting, k = lane.rendezvous[lane.slot[j]], lane.sequence[j]
                        meeting.pending[k] -= 1
                        if not meeting.pending[k]:
                            activities.meet(meeting, k, now)
                    else:
                        self._begin(lane, j, lane.ns[j], now)
            elif now in planned or now in due:
                continue
            elif late:
                for lane, j in late:
                    if lane.ns[j] == STRUNG:
                        stretches.begin(lane, j, now)
                    else:
                        activities.begin(lane, j, now)
                late.clear()
            elif self.stores.changed:
                for lane, j in self.stores.grant(now):
                    self._begin(lane, j, lane.granted[j], now)
            else:
                break
        if activities.disturbed or self.sharing.changed:
            self._settle(now)
        if self.num_events >= self._watch.next_look:
            self._watch.look(self.num_events, now)

    def _begin(self, lane: Lane, j: int, kind: int, now: int) -> None:
        if kind >= 0:
            self.ready.start(lane, j, kind, now)
        elif kind in LATE:
            self.ready.late.append((lane, j))
        elif kind == COLLECTIVE:
            meeting, k = lane.rendezvous[lane.slot[j]], lane.sequence[j]
            meeting.pending[k] -= 1
            if not meeting.pending[k]:
                self.activities.meet(meeting, k, now)
        elif kind == POOLED:
            self.stores.ask(now, lane, j)

    def _settle(self, now: int) -> None:
        """Once for an instant: speeds of what something began or ended beside."""
        rates: dict[Activity, int] = {}
        for lane in self.activities.disturbed:
            if lane.stretches:
                self.stretches.go_on(lane, now)
            if lane.running:
                self.activities.recap(lane, rates)
        self.activities.settle(rates, now)
