"""The phases of collectives that follow one another: each has its own time and its own loads.

A pipelined collective is one phase here, for chunks of all its phases overlap; so is one that has no flows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import Phase, Traffic
from clustersim.hardware.protocol import Demand, Protocol

__all__ = ["PhaseCost", "Phases", "phase_ns"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Phases:
    """The phases of S signatures, numbered through: P together.

    Attributes
    ----------
    first : NDArray[int64], shape (S + 1,)
        number of each signature's first phase; the last entry is P
    """

    first: NDArray[np.int64]

    @classmethod
    def of(cls, traffic: Sequence[Traffic]) -> Phases:
        """Of one signature each."""
        count = [1 if what.pipelined else max(1, len(what.phases)) for what in traffic]
        return cls(first=np.concatenate([[0], np.cumsum(count, dtype=np.int64)]).astype(np.int64))

    @property
    def num_phases(self) -> int:
        """P."""
        return int(self.first[-1])

    def of_signature(self, s: int) -> slice:
        """Numbers of the phases of a signature."""
        return slice(int(self.first[s]), int(self.first[s + 1]))

    def is_one(self, s: int) -> bool:
        """Whether a signature is one phase."""
        return bool(self.first[s + 1] - self.first[s] == 1)

    def ones_and_others(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The signatures of one phase, and the numbers of all phases of the others."""
        count = np.diff(self.first)
        return np.flatnonzero(count == 1), np.flatnonzero(self.repeat(count) > 1)

    def columns(self, s: int, what: Traffic) -> Sequence[int]:
        """Number of each of ``what.phases``; all the same when they overlap."""
        first = int(self.first[s])
        return [first] * len(what.phases) if self.is_one(s) else range(first, first + len(what.phases))

    def at_once(self, s: int, what: Traffic) -> list[tuple[int, tuple[Phase, ...]]]:
        """(number, the phases of ``what`` that run together under it); without those that have no flows."""
        if self.is_one(s):
            return [(int(self.first[s]), what.phases)] if what.phases else []
        return [(c, (phase,)) for c, phase in zip(self.columns(s, what), what.phases, strict=True)]

    def repeat(self, by_signature: NDArray[np.int64]) -> NDArray[np.int64]:
        """By phase what ``by_signature`` says of its signature."""
        return np.repeat(by_signature, np.diff(self.first))

    def total(self, by_phase: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums over the phases of each signature along the last axis."""
        if self.num_phases == len(self.first) - 1:
            return by_phase
        return np.asarray(np.add.reduceat(by_phase, self.first[:-1], axis=-1))

    def memory_of(self, s: int, what: Traffic) -> NDArray[np.int64]:
        """``what.memory_nbytes`` over the phases, by what the member sends and receives in each, shape (m, phases)."""
        if self.is_one(s):
            return what.memory_nbytes[:, None]
        moved = np.stack([_moved(phase, len(what.memory_nbytes)) for phase in what.phases], axis=1)
        return _divided(what.memory_nbytes, moved)

    def own_of(self, s: int, what: Traffic) -> list[int]:
        """``what.own_nbytes`` over the phases, by the bytes of each."""
        if self.is_one(s):
            return [what.own_nbytes]
        moved = np.array([[int(phase.nbytes.sum()) for phase in what.phases]], dtype=np.int64)
        return [int(part) for part in _divided(np.array([what.own_nbytes]), moved)[0]]


@dataclass(kw_only=True, slots=True, eq=False)
class PhaseCost:
    """What the phases take and ask for: n groups of m members, P phases, E edges.

    Attributes
    ----------
    phases : Phases
    ns : NDArray[int64], shape (n, P)
        duration alone on the links [ns]; those of a signature sum to its own
    load : NDArray[int64], shape (E, P)
        bytes that each puts on the resource [B]; those of a signature sum to its own
    peak_load : NDArray[int64], shape (n, P)
        of ``num_flows`` flows on the resource that the group waits for, the one with the largest load / capacity [B]
    memory_nbytes : NDArray[int64], shape (m, P)
        read plus written in each member's HBM [B]
    """

    phases: Phases
    ns: NDArray[np.int64]
    load: NDArray[np.int64]
    peak_load: NDArray[np.int64]
    memory_nbytes: NDArray[np.int64]


def phase_ns(way: Protocol, phases: Sequence[Demand], ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Durations of phases that follow one another.

    Each has whole nanoseconds, and enough of them for its bytes. What is left of ``ns`` goes to the phases by their
    latencies; the launch is the first's.

    Parameters
    ----------
    way : Protocol
    phases : Sequence[Demand]
    ns : NDArray[int64], shape (n,)
        of all together [ns]

    Returns
    -------
    NDArray[int64], shape (n, num_phases)
        [ns]; they sum to ``ns``, or to more where that is too short: when there is less latency than a nanosecond a
        phase, or when HBM is the busiest resource of a phase
    """
    later = replace(way, launch_latency=0.0)
    both = [(later if k else way).ns(phase) for k, phase in enumerate(phases)]
    latency = np.stack([latency_ns for _, latency_ns in both], axis=1)
    work = np.stack([whole for whole, _ in both], axis=1) - latency
    return work + _divided(np.maximum(0, ns - work.sum(axis=1)), latency)


def _moved(phase: Phase, num_members: int) -> NDArray[np.int64]:
    """Bytes that each member sends and receives, shape (m,)."""
    moved = np.zeros(num_members, dtype=np.int64)
    np.add.at(moved, phase.source, phase.nbytes)
    np.add.at(moved, phase.destination, phase.nbytes)
    return moved


def _divided(amount: NDArray[np.int64], share: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole parts of each amount in proportion to its shares, all to the first when these are 0; shape of ``share``."""
    sums = np.cumsum(share, axis=1)
    whole = sums[:, -1:]
    until = np.floor(amount[:, None] * np.where(whole > 0, sums / np.maximum(1, whole), 1.0)).astype(np.int64)
    until[:, -1] = amount
    return np.diff(until, axis=1, prepend=0)
