"""The event loop: SimPy's clock in whole nanoseconds, one event an instant, each instant handled whole.

At an instant all completions are collected first, then what they make ready, then the grants of pools in key order;
this repeats until the instant is quiet, and then every touched component of the shared resources is solved once. So the
order in which events were inserted never matters.

A plain op ends when it was said to, whatever happens: its end is told ahead to those that wait for it and is no event.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import simpy
from simpy.events import NORMAL, URGENT, Event, EventPriority

from clustersim.engine.cast import lanes_of, meetings_of
from clustersim.engine.deadlock import Deadlock, wait_for
from clustersim.engine.lane import COLLECTIVE, ELASTIC, POOLED, SLOWED, STRUNG, Lane, Rendezvous
from clustersim.engine.limits import LimitReached, Limits
from clustersim.engine.scene import ONE, Scene, Signature
from clustersim.engine.sharing import Activity, Sharing
from clustersim.engine.stores import Stores
from clustersim.engine.strand import Stretch
from clustersim.engine.untied import History, keep_course, tell_rates, untie
from clustersim.garbage import uncollected

__all__ = ["Engine"]

_LAST = EventPriority(2)
"""After all that happens at an instant."""

_LATE = (ELASTIC, SLOWED, STRUNG)
"""Ops that start when the collectives of the instant have taken their SMs: their speed is known then."""

_NEVER = 1 << 62
"""An instant [ns] that no run reaches: 146 years."""

Shuffle = Callable[[list[Any]], None]


class _Instant(Event):
    """An instant at which something ends: one event for all of it. It has succeeded before it is scheduled."""

    _ok = True
    _value = None

    def __init__(self, callbacks: list[Any]) -> None:  # one of these an instant: nothing else is set
        self.callbacks = callbacks


class Engine:
    """Plays a scene.

    Parameters
    ----------
    scene : Scene
        folded or full
    rounds : Sequence[int]
        times that each job plays its programs
    limits : Limits, optional
        when to stop early
    shuffle : callable, optional
        permutes a list in place: tests use it to show that insertion order does not matter
    progress : callable, optional
        called now and then with the simulated time [ns]
    varying : Mapping[str, int], optional
        names of the resources whose capacity may change -> their number in the scene

    Attributes
    ----------
    env : simpy.Environment
        the clock [ns]; generators that behave (failures, arrivals) may be started on it
    lanes : list[Lane]
    history : dict[tuple[Lane | Rendezvous, int, int], list[tuple[int, int, int]]]
        of each phase of an op whose rate changed after it started: (instant [ns], rate, limiting resource)
    turns : dict[tuple[Rendezvous, int], list[int]]
        of collectives whose phases follow one another: the instants at which the next phase began [ns]
    num_events : int
        instants handled
    """

    def __init__(
        self,
        scene: Scene,
        rounds: Sequence[int],
        limits: Limits | None = None,
        shuffle: Shuffle | None = None,
        progress: Callable[[int], None] | None = None,
        varying: Mapping[str, int] | None = None,
    ) -> None:
        self.scene = scene
        self.env = simpy.Environment()
        self.sharing = Sharing(scene.capacity)
        self.stores = Stores(scene.store_capacity)
        self.lanes = lanes_of(scene, rounds, (varying or {}).values())
        self.rendezvous = meetings_of(scene, self.lanes)
        self.history: History = {}
        self.turns: dict[tuple[Any, int], list[int]] = {}
        self.launched: dict[int, int] = {}
        self.cancelled: set[Lane] = set()
        self.num_events = 0
        self._planned: set[int] = set()
        self._varying = varying or {}
        self._limits = limits or Limits()
        self._shuffle = shuffle
        self._progress = progress
        self._timed: dict[int, list[tuple[Lane, int]]] = {}  # ops that start then, and ends that give back to pools
        self._active: dict[int, list[Activity | Stretch]] = {}
        self._special: list[tuple[Lane, int]] = []
        self._elastic: list[tuple[Lane, int]] = []
        self._recapped: dict[Lane, None] = {}
        self._handled = -1  # the last instant
        self._told = 0  # the last end that was told ahead
        self._callbacks: list[Any] = [self._instant]
        self._check_at = min(256, self._limits.num_events)
        self._wall_end = time.monotonic() + self._limits.wall_s

    # --- verbs -------------------------------------------------------------------------------------------------

    def launch(self, job: int, at: int = 0) -> None:
        """Start a job of the scene ``at`` [ns] or later: its roots become ready then.

        Raises
        ------
        ValueError
            when it has been launched before
        """
        if job in self._planned:
            raise ValueError(f"job {job} has been launched; a job runs once")
        self._planned.add(job)
        self.at(max(at, int(self.env.now)), lambda _: self._start(job))

    def cancel(self, job: int) -> None:
        """Stop a job now: its ops in progress end here, the others never start."""
        now = int(self.env.now)
        gone = {lane for lane in self.lanes if lane.spec.job == job}
        self.cancelled |= gone
        for waiting in (self._special, self._elastic):
            waiting[:] = [(lane, j) for lane, j in waiting if lane not in gone]
        for lane in gone:
            self._untie_all(lane, now)
        stopped = {
            activity
            for then, bucket in self._active.items()
            for activity in bucket
            if activity.held == then
            and activity.due >= 0
            and type(activity) is Activity
            and activity.owner.spec.job == job
        }
        stopped_at = {
            (activity.owner, activity.number): (activity.signature.phase, activity.due) for activity in stopped
        }
        for activity in stopped:
            activity.due = -1
            if activity.demands:
                self.sharing.remove(activity)
        for lane in gone:
            self._cut_stretches(lane, now)
            lane.running.clear()
            lane.taken = lane.num_joined = 0
            lane.watched = None
            lane.gives = None
            lane.first_target = array(
                "i", bytes(4 * len(lane.first_target))
            )  # what is still on the clock releases nothing
            for i, begun in enumerate(lane.start):
                if begun > now or begun == now > self._handled:  # it was told ahead
                    lane.start[i] = lane.end[i] = -1
                elif begun >= 0 and (lane.end[i] < 0 or lane.end[i] > now):
                    self._cut(lane, i, stopped_at, now)
                    lane.end[i] = now
        self.stores.forget(gone)
        self._wake(now)

    def _cut_stretches(self, lane: Lane, now: int) -> None:
        """Leave strands as they are now, their ops in progress as plain ones."""
        for stretch in lane.stretches:
            stretch.play(stretch.place(now, begun=False)[0] + 1)
            stretch.unbend()
            stretch.due = -1
        lane.stretches.clear()
        lane.write(now)

    def _cut(self, lane: Lane, i: int, stopped: Mapping[tuple[Any, int], tuple[int, int]], now: int) -> None:
        """Leave in the history that an op in progress did only part of its work."""
        joint = lane.slot[i] >= 0
        owner, k = (lane.rendezvous[lane.slot[i]], lane.sequence[i]) if joint else (lane, i)
        phases = owner.signatures[owner.script[k]].phases if isinstance(owner, Rendezvous) else ()
        begun, due = lane.start[i], lane.end[i]
        turns = self.turns.get((owner, k), [])
        if (owner, k) in stopped:
            phase, due = stopped[owner, k]
            begun = turns[-1] if turns else begun
        elif phases:  # as a plain op of its lane
            ends = list(accumulate((phase.ns for phase in phases), initial=begun))[1:]
            turns = self.turns[owner, k] = [t for t in ends[:-1] if t <= now]
            phase = len(turns)
            begun, due = [begun, *turns][-1], ends[phase]
        else:
            phase = 0
        took = max(1, due - begun)
        log = self.history.setdefault((owner, k, phase), [(begun, -(-ONE // took), -1)])
        if log[-1] != (now, 0, -1):  # a collective has several members
            log.append((now, 0, -1))

    def set_capacity(self, name: str, capacity: float) -> None:
        """Change the capacity of a resource [B/s] from now on; 0 is an outage.

        No op runs faster than it would alone at the capacities of the beginning: describe a link at its best and slow
        it from instant 0.

        Raises
        ------
        KeyError
            when ``name`` was not declared as varying before the run
        ValueError
            when ``capacity`` is negative or not finite
        """
        if name not in self._varying:
            declared = ", ".join(self._varying) or "none"
            raise KeyError(f"{name} is not declared as varying; declared: {declared}")
        if not 0 <= capacity < float("inf"):
            raise ValueError(f"{name}: capacity {capacity} must be finite and not negative")
        self.sharing.set_capacity(self._varying[name], round(capacity))
        self._wake(int(self.env.now))

    def at(self, when: int, callback: Callable[[Engine], None]) -> None:
        """Call ``callback(engine)`` at an instant [ns].

        Raises
        ------
        ValueError
            when that instant is past
        """
        if when < self.env.now:
            raise ValueError(f"{when} ns is past: it is {self.env.now} ns")

        def handle(_: Event) -> None:
            callback(self)
            self._wake(int(self.env.now))

        self.env.schedule(_Instant([handle]), priority=URGENT, delay=when - self.env.now)

    @uncollected()
    def run(self) -> None:
        """Play until nothing is left, or until the limit of simulated time.

        Raises
        ------
        Deadlock
            when ops remain that nothing can start, with the cycle of who waits for whom
        LimitReached
            when a limit stops the run
        """
        if self._limits.simulated_s < float("inf"):
            self.env.schedule(_Instant([self._too_long]), _LAST, round(self._limits.simulated_s * 1e9))
        try:
            self.env.run()
            if self._told > self.env.now:
                self.env.run(until=self._told)
        finally:
            self._write()
        waiting = wait_for(self)
        self._let_go()
        if waiting:
            raise Deadlock(waiting)

    @property
    def stuck(self) -> list[Activity]:
        """Ops in progress that a resource holds at next to nothing."""
        stuck = self._active.get(_NEVER, ())
        return [activity for activity in stuck if type(activity) is Activity and activity.due == _NEVER]

    def _let_go(self) -> None:
        """Undo references in a circle, so that all of a run goes with its last user and needs no collector."""
        self._callbacks.clear()
        for lane in self.lanes:
            lane.rendezvous.clear()

    # --- instants ----------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Bring starts and ends of all lanes up to now."""
        now = int(self.env.now)
        for lane in self.lanes:
            lane.write(now)
            starts = np.frombuffer(lane.start, dtype=np.int64)
            if (ahead := starts > now).any():  # stopped before what was told ahead
                starts[ahead] = np.frombuffer(lane.end, dtype=np.int64)[ahead] = -1
            for place, begin in lane.untold:
                tell_rates(lane, place, begin, now, self.history)
            lane.untold.clear()

    def _too_long(self, _: Event) -> None:
        self._write()
        if any(end < 0 or end > self.env.now for lane in self.lanes for end in lane.end if lane not in self.cancelled):
            raise LimitReached(f"limits.simulated_s: {self._limits.simulated_s:g} s of simulated time used")

    def _start(self, job: int) -> None:
        self.launched[job] = int(self.env.now)
        mine = [lane for lane in self.lanes if lane.spec.job == job and lane not in self.cancelled]
        self._special += [(lane, op) for lane in mine for op in lane.flat.roots]

    def _wake(self, now: int) -> None:
        """Have an instant handled at ``now``, after the event in hand."""
        self.env.schedule(_Instant(self._callbacks), delay=now - self.env.now)

    def _instant(self, _: Event) -> None:
        now: int = self.env.now  # type: ignore[assignment]  # whole nanoseconds throughout
        self.num_events += 1
        self._handled = now
        timed, active, special, elastic = self._timed, self._active, self._special, self._elastic
        shuffle = self._shuffle
        while True:
            come = timed.pop(now, None)
            if come is not None:
                if shuffle is not None:
                    shuffle(come)
                for lane, j in come:
                    if self.cancelled and lane in self.cancelled:
                        continue
                    if lane.end[j] == now:
                        self.stores.give(lane, j)
                        self._release(lane, j, now, now)
                    elif lane.ns[j] in _LATE:
                        elastic.append((lane, j))
                    else:
                        special.append((lane, j))
            finished = active.pop(now, None) if active else None
            if finished is not None:
                if shuffle is not None:
                    shuffle(finished)
                for activity in finished:
                    if activity.due == now:
                        activity.due = -1
                        if isinstance(activity, Stretch):
                            self._end_stretch(activity, now)
                        else:
                            self._finish(activity, now)
                    elif activity.due > now and activity.held == now:  # it was slowed since
                        self._push(activity, now, activity.due - now)
            if special:
                starting, special = special, []
                self._special = special
                if shuffle is not None:
                    shuffle(starting)
                for lane, j in starting:
                    if lane.ns[j] == COLLECTIVE:  # inlined: the most frequent of them
                        meeting, k = lane.rendezvous[lane.slot[j]], lane.sequence[j]
                        meeting.pending[k] -= 1
                        if not meeting.pending[k]:
                            self._meet(meeting, k, now)
                    else:
                        self._begin(lane, j, lane.ns[j], now)
            elif now in timed or now in active:
                continue
            elif elastic:
                for lane, j in elastic:
                    if lane.ns[j] == STRUNG:
                        self._begin_stretch(lane, j, now)
                    else:
                        self._begin_elastic(lane, j, now)
                elastic.clear()
            elif self.stores.changed:
                for lane, j in self.stores.grant(now):
                    self._begin(lane, j, lane.granted[j], now)
            else:
                break
        if self._recapped or self.sharing.changed:
            self._settle(now)
        if self.num_events >= self._check_at:
            self._check_at = min(self.num_events + 256, self._limits.num_events)
            self._limits.check(self.num_events, self._wall_end)
            if self._progress is not None:
                self._progress(now)

    def _push(self, activity: Activity | Stretch, now: int, took: int) -> None:
        then = now + took
        if then > _NEVER:
            then = _NEVER
        activity.due = then
        if now < activity.held <= then:
            return
        activity.held = then
        active = self._active
        if then in active:
            active[then].append(activity)
        else:
            active[then] = [activity]
            if then not in self._timed and then != _NEVER:
                self.env.schedule(_Instant(self._callbacks), NORMAL, took)

    def _release(self, lane: Lane, i: int, at: int, now: int) -> None:
        """An op ends at ``at``, which may be later than now: what waits for nothing else starts then."""
        waits, behind, ns, targets, first = lane.waits, lane.behind, lane.ns, lane.targets, lane.first_target
        ends: list[tuple[int, int]] = []
        while True:
            for j in targets[first[i] : first[i + 1]]:
                if at > now and behind[j] < at:
                    behind[j] = at
                waits[j] -= 1
                if waits[j]:
                    continue
                took, begin = ns[j], behind[j]
                if begin < now:
                    begin = now
                if took >= 0:
                    end = begin + took
                    lane.start[j] = begin
                    lane.end[j] = end
                    if lane.gives is not None and j in lane.gives:
                        self._plan(lane, j, end, now)
                    else:
                        ends.append((j, end))
                elif took == STRUNG and not lane.strands.slowed[lane.strands.at[j]]:
                    ends.append(lane.play(j, begin))
                elif begin > now:
                    self._plan(lane, j, begin, now)
                elif took in _LATE:
                    self._elastic.append((lane, j))
                else:
                    self._special.append((lane, j))
            if at > self._told:
                self._told = at
            if not ends:
                return
            i, at = ends.pop()

    def _plan(self, lane: Lane, j: int, then: int, now: int) -> None:
        """Look at an op at an instant, now or later."""
        if then in self._timed:
            self._timed[then].append((lane, j))
        else:
            self._timed[then] = [(lane, j)]
            if then not in self._active:
                self.env.schedule(_Instant(self._callbacks), NORMAL, then - now)

    def _begin(self, lane: Lane, j: int, kind: int, now: int) -> None:
        if kind >= 0:
            then = now + kind
            lane.start[j] = now
            lane.end[j] = then
            if lane.gives is not None and j in lane.gives:
                self._plan(lane, j, then, now)
            else:
                self._release(lane, j, then, now)
        elif kind in _LATE:
            self._elastic.append((lane, j))
        elif kind == COLLECTIVE:
            meeting, k = lane.rendezvous[lane.slot[j]], lane.sequence[j]
            meeting.pending[k] -= 1
            if not meeting.pending[k]:
                self._meet(meeting, k, now)
        elif kind == POOLED:
            self.stores.ask(now, lane, j)

    def _begin_elastic(self, lane: Lane, j: int, now: int) -> None:
        signature = lane.signatures[lane.kind[j]] if lane.ns[j] != SLOWED else lane.unshared[lane.kind[j]]
        took, cap = signature.timings.get(lane.taken) or signature.beside(lane.taken, lane.num_sms)  # type: ignore[union-attr]
        activity = Activity(lane, j, signature, cap, now)  # type: ignore[arg-type]
        lane.start[j] = now
        lane.running[j] = activity
        if lane.strands.has_knots:
            self._come_near(lane, j)
        if activity.demands:
            self.sharing.add(activity)
        self._push(activity, now, took)

    def _begin_stretch(self, lane: Lane, j: int, now: int) -> None:
        if not lane.strands.slowed[lane.strands.at[j]]:
            self._release(lane, *lane.play(j, now), now)
            return
        if lane.strands.has_knots:
            if lane.watched is not None and lane.strands.at[j] == lane.watched[0] + 1:
                keep_course(lane, self.history)
            self._come_near(lane, j)
        alone = not (lane.running or lane.num_joined or lane.stretches)
        stretch = Stretch(lane, lane.strands.at[j], now, lane.taken, alone=alone)
        lane.stretches[stretch] = None
        self._push(stretch, now, stretch.end - now)

    def _end_stretch(self, stretch: Stretch, now: int) -> None:
        lane = stretch.lane
        stretch.unbend()
        stretch.play(stretch.last)
        del lane.stretches[stretch]
        strands, last = stretch.strands, stretch.last
        if strands.has_knots:
            if lane.stretches:
                self._recapped[lane] = None
            elif strands.is_unknown(last) and self._is_quiet(lane) and lane.is_open(last, now):
                lane.watched = last, now
        self._release(lane, strands.ops[last - 1], now, now)

    def _go_on(self, lane: Lane, now: int) -> None:
        """What runs beside strands in progress has changed: what is left of them goes on at its new speed."""
        strands = lane.strands
        for stretch in list(lane.stretches):
            place, begun = stretch.place(now, begun=True)
            if place >= strands.slowed[place]:
                continue
            alone = self._is_quiet(lane, but=stretch)
            if stretch.taken == lane.taken and stretch.alone == alone:
                continue
            if strands.knot[place] >= 0:
                self._untie(stretch, place, begun, now)
                continue
            if stretch.taken != lane.taken:
                self._bend(stretch, place, begun, now)
            stretch.alone = alone
            stretch.last = lane.reach(place, now, alone=alone)
            self._push(stretch, now, stretch.end - now)

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
                self._rate(bent, rate, now)
            stretch.since = bent.since + -(-bent.left // bent.rate)

    # --- knots -------------------------------------------------------------------------------------------------

    def _is_quiet(self, lane: Lane, but: Stretch | None = None) -> bool:
        """Whether nothing but a stretch runs on a lane that could slow it, or be slowed."""
        return not (lane.running or lane.num_joined or len(lane.stretches) > (but is not None))

    def _come_near(self, lane: Lane, j: int) -> None:
        """An op of a lane begins: what else runs there is no longer alone."""
        if lane.stretches:
            self._recapped[lane] = None
        if lane.watched is not None:
            base = lane.strands.ops[lane.watched[0]]
            if not base <= j < lane.strands.ops[lane.watched[0] + 1]:
                lane.watched = None

    def _untie_all(self, lane: Lane, now: int) -> None:
        """Play the knots in progress on a lane op by op from now on."""
        for stretch in list(lane.stretches):
            place, begun = stretch.place(now, begun=False)
            if place >= stretch.first and lane.strands.knot[place] >= 0:
                self._untie(stretch, place, begun, now, begun=False)

    def _untie(self, stretch: Stretch, place: int, since: int, now: int, *, begun: bool = True) -> None:
        """Something came near a knot in progress: it goes on op by op from where it is."""
        tell_rates(stretch.lane, place, since, now, self.history)
        plain, others = untie(stretch, place, since, now, begun=begun)
        for j in plain:
            self._release(stretch.lane, j, stretch.lane.end[j], now)
        for activity in others:
            if activity.demands:
                self.sharing.add(activity)
                self.sharing.look_at(activity)
            self._push(activity, now, activity.since + -(-activity.left // activity.rate) - now)

    def _meet(self, meeting: Rendezvous, k: int, now: int) -> None:
        """The last member has arrived: the collective starts for all."""
        signature = meeting.signatures[meeting.script[k]]
        for lane, ops in meeting.members:
            lane.start[ops[k]] = now
            lane.num_joined += 1
            if lane.strands.has_knots:
                self._come_near(lane, ops[k])
            if signature.num_sms:
                lane.taken += signature.num_sms
                if lane.running or lane.stretches:
                    self._recapped[lane] = None
        if signature.phases:
            self.turns[meeting, k] = []
            signature = signature.phases[0]
        self._play(meeting, k, signature, now)

    def _play(self, meeting: Rendezvous, k: int, signature: Signature, now: int) -> None:
        """A collective, or one of its phases, begins."""
        took, cap = signature.timings.get(0) or signature.beside(0, 1)
        activity = Activity(meeting, k, signature, cap, now)
        if took and activity.demands:
            self.sharing.add(activity)
        self._push(activity, now, took)

    def _finish(self, activity: Activity, now: int) -> None:
        owner, k = activity.owner, activity.number
        if activity.demands:
            self.sharing.remove(activity)
        if type(owner) is Lane:
            owner.end[k] = now
            del owner.running[k]
            if owner.stretches and owner.strands.has_knots:
                self._recapped[owner] = None
            self._ended(owner, k, now)
            return
        signature = activity.signature
        if signature.then is not None:
            self.turns[owner, k].append(now)
            self._play(owner, k, signature.then, now)
            return
        num_sms = signature.num_sms
        for lane, ops in owner.members:
            lane.end[ops[k]] = now
            lane.num_joined -= 1
            lane.taken -= num_sms
            if lane.stretches or (num_sms and lane.running):
                self._recapped[lane] = None
            self._ended(lane, ops[k], now)

    def _ended(self, lane: Lane, i: int, now: int) -> None:
        if lane.gives is not None and i in lane.gives:
            self.stores.give(lane, i)
        self._release(lane, i, now, now)

    def _settle(self, now: int) -> None:
        """Decide the rates that changed at this instant, and so when those ops will end."""
        rates: dict[Activity, int] = {}
        for lane in self._recapped:
            if lane.stretches:
                self._go_on(lane, now)
            for activity in lane.running.values():
                _, cap = activity.signature.beside(lane.taken, lane.num_sms)
                if cap != activity.cap:
                    self.sharing.recap(activity, cap, rates)
        self._recapped.clear()
        if self.sharing.changed:
            self.sharing.settle(rates)
        for activity, rate in rates.items():
            self._rate(activity, rate, now)
            self._push(activity, now, -(-activity.left // rate))

    def _rate(self, activity: Activity, rate: int, now: int) -> None:
        """From now on an op in progress runs at another rate."""
        key = activity.owner, activity.number, activity.signature.phase
        log = self.history.get(key)
        if log is None:
            log = self.history[key] = [(activity.since, activity.rate, -1)]
        if log[-1][0] == now:
            log[-1] = (now, rate, activity.limit)
        else:
            log.append((now, rate, activity.limit))
            activity.left -= activity.rate * (now - activity.since)
            activity.since = now
        activity.rate = rate
