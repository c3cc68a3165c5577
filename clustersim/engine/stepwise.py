"""Collectives played transfer by transfer: the reference for the rates and times of whole collectives.

The engine takes a collective, or each of its phases that follow one another, as one activity: flows over its whole
length at one even speed. Here each message of its schedule is a flow of its own, so fill times, chunks that queue at a
slow link and unequal parts show. It is slow, and for groups of at most :data:`MAX_MEMBERS`. Rates are in floats and
found by a few lines of their own, so that it agrees with :mod:`clustersim.engine.sharing` for no other reason than that
both are right.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.steps.schedule import Schedule
from clustersim.faults import BadInput, Fault
from clustersim.topology.topology import Topology

__all__ = ["MAX_MEMBERS", "MAX_TRANSFERS", "StepwiseCollective", "stepwise"]

MAX_MEMBERS = 32
"""Of one collective; its transfers grow with the square."""

MAX_TRANSFERS = 200_000
"""Of all collectives together: some seconds to a minute."""

_TIE = 1e-10
"""Times and shares that differ by less are equal: what rounding of floats leaves between equal chains of sums."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StepwiseCollective:
    """One collective to play.

    Parameters
    ----------
    schedule : Schedule
    devices : NDArray[int64], shape (n,)
        of its members, by position in the group
    start : float
        when its last member arrives [s]
    overhead : float
        that a message takes its connection for before its first byte flows [s]
    """

    schedule: Schedule
    devices: NDArray[np.int64]
    start: float = 0.0
    overhead: float = 0.0


def stepwise(topology: Topology, collectives: Sequence[StepwiseCollective]) -> NDArray[np.float64]:
    """Play collectives side by side.

    A transfer starts when those it waits for have arrived and the message before it on its connection (channel, source,
    destination) has left; it takes its connection for the overhead, then its bytes flow at the max-min fair share of
    the resources of its route, all messages alike; it has arrived the latency of the route after its last byte left.
    The first transfers start when the kernel is launched on the slowest member. Only links are played: not HBM, SMs or
    the protocols of a communication library, nor adding up in switches.

    Parameters
    ----------
    topology : Topology
    collectives : Sequence[StepwiseCollective]

    Returns
    -------
    NDArray[float64], shape (num_collectives,)
        when each has ended: the arrival of its last transfer [s]

    Raises
    ------
    BadInput
        when a group has more than ``MAX_MEMBERS`` members, all have more than ``MAX_TRANSFERS`` transfers together, a
        schedule is for another number of members, or two members sit on one device
    """
    _check(collectives)
    return np.array(_Play(topology, collectives).ends()) / 1e9


def _check(collectives: Sequence[StepwiseCollective]) -> None:
    faults = []
    for i, one in enumerate(collectives):
        n, key = len(one.devices), f"collectives[{i}]"
        if n > MAX_MEMBERS:
            rule = f"members are too many to play step by step; at most {MAX_MEMBERS}"
            faults.append(Fault(key=f"{key}.devices", value=n, rule=rule, nearest=MAX_MEMBERS))
        if n != one.schedule.num_members:
            rule = f"devices for a schedule of {one.schedule.num_members} members"
            faults.append(Fault(key=f"{key}.devices", value=n, rule=rule, nearest=one.schedule.num_members))
        if len(np.unique(one.devices)) != n:
            faults.append(Fault(key=f"{key}.devices", value=one.devices.tolist(), rule="must be pairwise different"))
        for name in ("start", "overhead"):
            if not 0 <= getattr(one, name) < float("inf"):
                value = getattr(one, name)
                faults.append(Fault(key=f"{key}.{name}", value=value, rule="must be zero or positive [s]", nearest=0))
    total = sum(len(one.schedule.transfers) for one in collectives)
    if total > MAX_TRANSFERS:
        rule = f"transfers are too many; at most {MAX_TRANSFERS}: fewer slices, members or collectives"
        faults.append(Fault(key="collectives", value=total, rule=rule, nearest=MAX_TRANSFERS))
    if faults:
        raise BadInput(faults)


@dataclass(slots=True, eq=False)
class _Message:
    """State of one transfer.

    Attributes
    ----------
    collective, pair : int
        whose it is, and between which devices
    nbytes : float
        [B]
    overhead : float
        [ns]
    waits : int
        how many have yet to come before it may start
    then, following : list[_Message]
        those that wait for its arrival; the one that waits for its connection
    """

    collective: int
    pair: int
    nbytes: float
    overhead: float
    waits: int = 0
    then: list[_Message] = field(default_factory=list)
    following: list[_Message] = field(default_factory=list)


class _Play:
    """The messages of all collectives, the routes between their devices, and the clock [ns]."""

    def __init__(self, topology: Topology, collectives: Sequence[StepwiseCollective]) -> None:
        self.entered = 0
        self.soon: list[tuple[float, int, bool, _Message]] = []  # when, order of entry, arrives (else: flows), which
        self.flowing: list[_Message] = []
        self.left = np.empty(0)
        self.rates_of: dict[bytes, NDArray[np.float64]] = {}
        self.end = [1e9 * (one.start + _launch(topology, one.devices)) for one in collectives]
        pairs: dict[tuple[int, int], int] = {}
        for c, one in enumerate(collectives):
            for message in _messages(c, one, pairs):
                if not message.waits:
                    self._start(message, self.end[c])
        ends = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
        hops = topology.route(ends[:, 0], ends[:, 1])
        self.latency = np.append(topology.resources.latency_ns, 0)[hops].sum(axis=1).astype(np.float64)
        used, rows = np.unique(np.append(hops, -1), return_inverse=True)
        self.hops = rows.reshape(-1)[:-1].reshape(hops.shape)  # row 0 stands for no hop
        self.capacity = np.append(np.inf, topology.resources.capacity[used[1:]] / 1e9)

    def ends(self) -> list[float]:
        """When each collective has ended."""
        now = 0.0
        while self.soon or self.flowing:
            pair = np.array([message.pair for message in self.flowing], dtype=np.int64)
            rate = self._rates(pair)
            need = self.left / rate
            due = float(need.min(initial=np.inf))
            step = max(0.0, min(due, self.soon[0][0] - now if self.soon else np.inf))
            now += step
            gone = need <= step * (1 + _TIE) + now * _TIE
            self.left = (self.left - rate * step)[~gone]
            leaving = [message for message, left in zip(self.flowing, gone.tolist(), strict=True) if left]
            self.flowing = [message for message, left in zip(self.flowing, gone.tolist(), strict=True) if not left]
            for message in leaving:
                self._enter(now + float(self.latency[message.pair]), True, message)
                self._release(message.following, now)
            begun = []
            while self.soon and self.soon[0][0] <= now * (1 + _TIE):
                _, _, arrives, message = heapq.heappop(self.soon)
                if arrives:
                    self.end[message.collective] = max(self.end[message.collective], now)
                    self._release(message.then, now)
                else:
                    begun.append(message)
            self.flowing += begun
            self.left = np.append(self.left, [message.nbytes for message in begun])
        return self.end

    def _release(self, messages: list[_Message], now: float) -> None:
        for message in messages:
            message.waits -= 1
            if not message.waits:
                self._start(message, now)

    def _start(self, message: _Message, now: float) -> None:
        self._enter(now + message.overhead, False, message)

    def _enter(self, when: float, arrives: bool, message: _Message) -> None:
        self.entered += 1
        heapq.heappush(self.soon, (when, self.entered, arrives, message))

    def _rates(self, pair: NDArray[np.int64]) -> NDArray[np.float64]:
        """Max-min fair rate of each message in flight [B/ns]; the same pairs come again step after step."""
        count = np.bincount(pair, minlength=len(self.hops))
        key = count.tobytes()
        if key not in self.rates_of:
            self.rates_of[key] = _max_min(self.hops, count, self.capacity)
        return self.rates_of[key][pair]


def _messages(c: int, one: StepwiseCollective, pairs: dict[tuple[int, int], int]) -> list[_Message]:
    """The transfers of one collective, joined by what they wait for; ``pairs`` takes the pairs of devices."""
    devices, made = one.devices.tolist(), list[_Message]()
    last: dict[tuple[int, int, int], _Message] = {}
    for what, nbytes in zip(one.schedule.transfers, one.schedule.nbytes().tolist(), strict=True):
        ends = devices[what.source], devices[what.destination]
        message = _Message(c, pairs.setdefault(ends, len(pairs)), float(nbytes), one.overhead * 1e9, len(what.after))
        for before in what.after:
            made[before].then.append(message)
        if (what.channel, *ends) in last:
            last[what.channel, *ends].following.append(message)
            message.waits += 1
        last[what.channel, *ends] = message
        made.append(message)
    return made


def _launch(topology: Topology, devices: NDArray[np.int64]) -> float:
    """Time to launch a kernel on the slowest of some devices [s]."""
    return max((topology.gpus[kind].launch_latency for kind in topology.gpu_of[devices]), default=0.0)


def _max_min(hops: NDArray[np.int64], count: NDArray[np.int64], capacity: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rates by progressive filling (Bertsekas and Gallager, *Data Networks*, 1992, section 6.5.2).

    Parameters
    ----------
    hops : NDArray[int64], shape (num_pairs, num_hops)
        rows of ``capacity``
    count : NDArray[int64], shape (num_pairs,)
        messages in flight
    capacity : NDArray[float64], shape (num_rows,)

    Returns
    -------
    NDArray[float64], shape (num_pairs,)
        of each of a pair's messages
    """
    rate = np.zeros(len(hops))
    room, open_ = capacity.copy(), count > 0
    while open_.any():
        users = np.bincount(hops[open_].ravel(), np.repeat(count[open_], hops.shape[1]), len(capacity))
        share = np.divide(room, users, out=np.full(len(room), np.inf), where=users > 0)
        level = share.min()
        frozen = open_ & (share[hops].min(axis=1) <= level * (1 + _TIE))
        rate[frozen] = level
        room = room - level * np.bincount(hops[frozen].ravel(), np.repeat(count[frozen], hops.shape[1]), len(capacity))
        np.maximum(room, 0.0, out=room)
        open_ &= ~frozen
    return rate
