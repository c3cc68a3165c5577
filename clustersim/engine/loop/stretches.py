"""Strands in progress: how they begin, go on at another speed and end."""

from __future__ import annotations

from clustersim.engine.loop.activities import Activities
from clustersim.engine.loop.calendar import Calendar
from clustersim.engine.loop.history import History
from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.ready import Ready
from clustersim.engine.loop.untied import keep_course, untie
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.strands.gates import is_open, reach
from clustersim.engine.strands.stretch import Stretch

__all__ = ["Stretches"]


class Stretches:
    """All strands in progress of a run.

    Parameters
    ----------
    calendar : Calendar
        knows when they will end
    ready : Ready
        takes what they release
    activities : Activities
        what runs beside them, and takes ops of knots that something came near
    history : History
        keeps how rates in them changed
    """

    __slots__ = ("_activities", "_calendar", "_history", "_ready")

    def __init__(self, calendar: Calendar, ready: Ready, activities: Activities, history: History) -> None:
        self._calendar = calendar
        self._ready = ready
        self._activities = activities
        self._history = history

    def begin(self, lane: Lane, j: int, now: int) -> None:
        """A strand begins at one of its ops."""
        strands = lane.strands
        if not strands.slowed[strands.at[j]]:
            self._ready.release(lane, *lane.play(j, now), now)
            return
        if strands.has_knots:
            if lane.watched is not None and strands.at[j] == lane.watched[0] + 1:
                keep_course(lane, self._history)
            self._activities.come_near(lane, j)
        stretch = Stretch(lane, strands.at[j], now, lane.taken, alone=lane.is_quiet())
        lane.stretches[stretch] = None
        self._calendar.push(stretch, now, stretch.end - now)

    def end(self, stretch: Stretch, now: int) -> None:
        """A strand has come as far as it goes without being looked at."""
        lane = stretch.lane
        stretch.unbend()
        stretch.play(stretch.last)
        del lane.stretches[stretch]
        strands, last = stretch.strands, stretch.last
        if strands.has_knots:
            if lane.stretches:
                self._activities.disturbed[lane] = None
            elif strands.is_unknown(last) and lane.is_quiet() and is_open(lane, last, now):
                lane.watched = last, now
        self._ready.release(lane, strands.ops[last - 1], now, now)

    def go_on(self, lane: Lane, now: int) -> None:
        """What runs beside strands in progress has changed: what is left of them goes on at its new speed."""
        strands = lane.strands
        for stretch in list(lane.stretches):
            place, begun = stretch.place(now, begun=True)
            if place >= strands.slowed[place]:
                continue
            alone = lane.is_quiet(but=stretch)
            if stretch.taken == lane.taken and stretch.alone == alone:
                continue
            if strands.knot[place] >= 0:
                self._untie(stretch, place, begun, now)
                continue
            if stretch.taken != lane.taken:
                self._bend(stretch, place, begun, now)
            stretch.alone = alone
            stretch.last = reach(lane, place, now, alone=alone)
            self._calendar.push(stretch, now, stretch.end - now)

    def _bend(self, stretch: Stretch, place: int, begun: int, now: int) -> None:
        """SMs were taken from a strand or given back."""
        lane, strands = stretch.lane, stretch.strands
        if place >= stretch.first:
            stretch.unbend()
            stretch.play(place)
            op = strands.ops[place]
            stretch.first, stretch.since = place, begun
            if begun < now and strands.is_slowed(place):
                signature = lane.unshared[lane.kind[op]]
                assert signature is not None
                stretch.bent = Activity(lane, op, signature, signature.beside(stretch.taken, lane.num_sms)[1], begun)
                lane.start[op] = begun
                stretch.first = place + 1
        bent, stretch.taken = stretch.bent, lane.taken
        if bent is not None:
            _, rate = bent.signature.beside(lane.taken, lane.num_sms)
            if rate != bent.rate:
                self._history.change(bent, rate, now)
            stretch.since = bent.since + -(-bent.left // bent.rate)

    def untie_all(self, lane: Lane, now: int) -> None:
        """Play the knots in progress on a lane op by op from now on."""
        for stretch in list(lane.stretches):
            place, begun = stretch.place(now, begun=False)
            if place >= stretch.first and lane.strands.knot[place] >= 0:
                self._untie(stretch, place, begun, now, begun=False)

    def _untie(self, stretch: Stretch, place: int, since: int, now: int, *, begun: bool = True) -> None:
        """Something came near a knot in progress: it goes on op by op from where it is."""
        lane = stretch.lane
        self._history.tell(lane, place, since, now)
        plain, others = untie(stretch, place, since, now, begun=begun)
        for j in plain:
            self._ready.release(lane, j, lane.end[j], now)
        for activity in others:
            self._activities.go_on(activity, now)
