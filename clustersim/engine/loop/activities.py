"""Ops in progress on shared resources: how they begin, change their speed and end."""

from __future__ import annotations

from clustersim.engine.loop.calendar import Calendar
from clustersim.engine.loop.end_code import SLOWED
from clustersim.engine.loop.history import History
from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.ready import Ready
from clustersim.engine.loop.rendezvous import Rendezvous
from clustersim.engine.loop.stores import Stores
from clustersim.engine.scene.signature import Signature
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.sharing.sharing import Sharing

__all__ = ["Activities"]


class Activities:
    """All activities of a run.

    Parameters
    ----------
    calendar : Calendar
        knows when they will end
    ready : Ready
        takes what they release
    stores : Stores
        take what they give back
    sharing : Sharing
        decides their rates
    history : History
        keeps how these changed

    Attributes
    ----------
    disturbed : dict[Lane, None]
        lanes on which something began or ended beside ops in progress at this instant
    """

    __slots__ = ("_calendar", "_history", "_ready", "_stores", "disturbed", "sharing")

    def __init__(self, calendar: Calendar, ready: Ready, stores: Stores, sharing: Sharing, history: History) -> None:
        self.sharing = sharing
        self.disturbed: dict[Lane, None] = {}
        self._calendar = calendar
        self._ready = ready
        self._stores = stores
        self._history = history

    def begin(self, lane: Lane, j: int, now: int) -> None:
        """A lane's own op begins."""
        signature = lane.signatures[lane.kind[j]] if lane.ns[j] != SLOWED else lane.unshared[lane.kind[j]]
        took, cap = signature.timings.get(lane.taken) or signature.beside(lane.taken, lane.num_sms)  # type: ignore[union-attr]
        activity = Activity(lane, j, signature, cap, now)  # type: ignore[arg-type]
        lane.start[j] = now
        lane.running[j] = activity
        if lane.strands.has_knots:
            self.come_near(lane, j)
        if activity.demands:
            self.sharing.add(activity)
        self._calendar.push(activity, now, took)

    def meet(self, meeting: Rendezvous, k: int, now: int) -> None:
        """The last member has arrived: the collective starts for all."""
        signature = meeting.signatures[meeting.script[k]]
        for lane, ops in meeting.members:
            lane.start[ops[k]] = now
            lane.num_joined += 1
            if lane.strands.has_knots:
                self.come_near(lane, ops[k])
            if signature.num_sms:
                lane.taken += signature.num_sms
                if lane.running or lane.stretches:
                    self.disturbed[lane] = None
        if signature.phases:
            self._history.turns[meeting, k] = []
            signature = signature.phases[0]
        self._phase(meeting, k, signature, now)

    def _phase(self, meeting: Rendezvous, k: int, signature: Signature, now: int) -> None:
        """A collective, or one of its phases, begins."""
        took, cap = signature.timings.get(0) or signature.beside(0, 1)
        activity = Activity(meeting, k, signature, cap, now)
        if took and activity.demands:
            self.sharing.add(activity)
        self._calendar.push(activity, now, took)

    def go_on(self, activity: Activity, now: int) -> None:
        """An op that was played as part of a knot goes on by itself, with the work that is left of it."""
        if activity.demands:
            self.sharing.add(activity)
            self.sharing.look_at(activity)
        self._calendar.push(activity, now, activity.since + -(-activity.left // activity.rate) - now)

    def end(self, activity: Activity, now: int) -> None:
        """An activity ends: its op, or with it one phase of a collective."""
        owner, k = activity.owner, activity.number
        if activity.demands:
            self.sharing.remove(activity)
        if type(owner) is Lane:
            owner.end[k] = now
            del owner.running[k]
            if owner.stretches and owner.strands.has_knots:
                self.disturbed[owner] = None
            self._ended(owner, k, now)
            return
        signature = activity.signature
        if signature.then is not None:
            self._history.turns[owner, k].append(now)
            self._phase(owner, k, signature.then, now)
            return
        num_sms = signature.num_sms
        for lane, ops in owner.members:
            lane.end[ops[k]] = now
            lane.num_joined -= 1
            lane.taken -= num_sms
            if lane.stretches or (num_sms and lane.running):
                self.disturbed[lane] = None
            self._ended(lane, ops[k], now)

    def _ended(self, lane: Lane, i: int, now: int) -> None:
        if lane.gives is not None and i in lane.gives:
            self._stores.give(lane, i)
        self._ready.release(lane, i, now, now)

    def come_near(self, lane: Lane, j: int) -> None:
        """An op of a lane begins: what else runs there is no longer alone."""
        if lane.stretches:
            self.disturbed[lane] = None
        if lane.watched is not None:
            place, _ = lane.watched
            if not lane.strands.ops[place] <= j < lane.strands.ops[place + 1]:
                lane.watched = None

    def recap(self, lane: Lane, rates: dict[Activity, int]) -> None:
        """Bring the lane's own ops to the speed that the SMs left to them allow.

        Parameters
        ----------
        rates : dict[Activity, int]
            takes the new rates that are known by that
        """
        for activity in lane.running.values():
            if not activity.signature.sm_ns:
                continue  # copies and writes: no SM works on them
            _, cap = activity.signature.beside(lane.taken, lane.num_sms)
            if cap != activity.cap:
                self.sharing.recap(activity, cap, rates)

    def settle(self, rates: dict[Activity, int], now: int) -> None:
        """Decide all other rates that changed at this instant, and so when those ops will end."""
        self.disturbed.clear()
        if self.sharing.changed:
            self.sharing.settle(rates)
        for activity, rate in rates.items():
            self._history.change(activity, rate, now)
            self._calendar.push(activity, now, -(-activity.left // rate))
