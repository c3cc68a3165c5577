"""The messages of collectives on links: each a flow of its own, at its max-min fair share."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import Topology

if TYPE_CHECKING:
    from clustersim.engine.stepwise import StepwiseCollective

__all__ = ["Messages"]

_TIE = 1e-10
"""Times and shares that differ by less are equal: what rounding of floats leaves between equal chains of sums."""


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


class Messages:
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
