"""The engine: a scene being played, and the verbs by which a program may act on it while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from simpy.events import Event

from clustersim.engine.deadlock import Deadlock, wait_for
from clustersim.engine.limits import LimitReached, Limits, Watch
from clustersim.engine.loop.cancel import cancel
from clustersim.engine.loop.cast import lanes_of, meetings_of
from clustersim.engine.loop.event_loop import EventLoop, Shuffle
from clustersim.engine.scene.scene import Scene
from clustersim.garbage import uncollected

__all__ = ["Engine"]


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
    rendezvous : list[Rendezvous]
    calendar : Calendar
    stores : Stores
    history : History
    cancelled : set[Lane]
    launched : dict[int, int]
        job -> when its roots became ready [ns]
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
        self._varying = varying or {}
        self._limits = limits or Limits()
        self._loop = EventLoop(scene, Watch(self._limits, progress), shuffle)
        self.scene = scene
        self.calendar = self._loop.calendar
        self.env = self.calendar.env
        self.stores = self._loop.stores
        self.history = self._loop.history
        self.cancelled = self._loop.cancelled
        self.lanes = lanes_of(scene, rounds, self._varying.values())
        self.rendezvous = meetings_of(scene, self.lanes)
        self.launched: dict[int, int] = {}
        self._planned: set[int] = set()

    @property
    def num_events(self) -> int:
        """Instants handled."""
        return self._loop.num_events

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
        cancel(self._loop, job, {lane for lane in self.lanes if lane.spec.job == job})
        self.calendar.wake(int(self.env.now))

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
        self._loop.sharing.set_capacity(self._varying[name], round(capacity))
        self.calendar.wake(int(self.env.now))

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
            self.calendar.wake(int(self.env.now))

        self.calendar.call(handle, when)

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
            self.calendar.call(self._too_long, round(self._limits.simulated_s * 1e9) + int(self.env.now), last=True)
        try:
            self.env.run()
            if self._loop.ready.told > self.env.now:
                self.env.run(until=self._loop.ready.told)
        finally:
            self._write()
        waiting = wait_for(self)
        self._let_go()
        if waiting:
            raise Deadlock(waiting)

    def _start(self, job: int) -> None:
        self.launched[job] = int(self.env.now)
        mine = [lane for lane in self.lanes if lane.spec.job == job and lane not in self.cancelled]
        self._loop.ready.starting += [(lane, op) for lane in mine for op in lane.flat.roots]

    def _too_long(self, _: Event) -> None:
        self._write()
        if any(end < 0 or end > self.env.now for lane in self.lanes for end in lane.end if lane not in self.cancelled):
            raise LimitReached(f"limits.simulated_s: {self._limits.simulated_s:g} s of simulated time used")

    def _write(self) -> None:
        """Bring starts and ends of all lanes up to now."""
        now = int(self.env.now)
        for lane in self.lanes:
            lane.write(now)
            starts = np.frombuffer(lane.start, dtype=np.int64)
            if (ahead := starts > now).any():  # stopped before what was told ahead
                starts[ahead] = np.frombuffer(lane.end, dtype=np.int64)[ahead] = -1
            for place, begin in lane.untold:
                self.history.tell(lane, place, begin, now)
            lane.untold.clear()

    def _let_go(self) -> None:
        """Undo references in a circle, so that all of a run goes with its last user and needs no collector."""
        self.calendar.close()
        for lane in self.lanes:
            lane.rendezvous.clear()
