"""The record of a run as the engine leaves it: a few integer arrays for each simulated lane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.timed_work import TimedWork
from clustersim.workload.arrays import Arrays
from clustersim.workload.job import Job

__all__ = ["LaneRecord", "Rates", "Record"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LaneRecord:
    """One simulated rank and the ranks it stands for; N = rounds · ops of its program, round after round.

    A round is the program played once. Where it covers several optimizer steps and the last round goes on behind those
    of the run, the ops of further steps are recorded as if they had never started.

    Attributes
    ----------
    job : int
        index into ``Record.jobs``
    rank : int
        the representative's rank in its job
    multiplicity : int
        ranks in its class
    arrays : Arrays
        its program, one round
    steps : int
        optimizer steps of the run
    start_ns, end_ns, ready_ns : NDArray[int64], shape (N,)
        [ns]; -1 for an op that never started (or never ended, or never became ready)
    cause_lane, cause_op : NDArray[int32], shape (N,)
        lane and flat op number whose end let the op start, as what it waited for or as what gave it back to a pool;
        -1: the launch
    bound : NDArray[int32], shape (N,)
        index into ``Record.bounds``
    pooled : NDArray[int64], shape (w, 2)
        (flat op, index into ``arrays.pools``) of the ops that a pool let start when it had been given back to
    resident : Mapping[str, int]
        bytes held from beginning to end, by memory key: what the program says, and the pools that are this rank's [B]
    groups : dict[str, str]
        slot -> the representative's group as the trace names it: ``tp/tp/3``
    """

    job: int
    rank: int
    multiplicity: int
    arrays: Arrays
    steps: int
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    ready_ns: NDArray[np.int64]
    cause_lane: NDArray[np.int32]
    cause_op: NDArray[np.int32]
    bound: NDArray[np.int32]
    groups: dict[str, str]
    resident: Mapping[str, int] = field(default_factory=dict)
    pooled: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))

    @property
    def rounds(self) -> int:
        """Times that the program is played."""
        return -(-self.steps // self.arrays.period)

    @property
    def ops(self) -> NDArray[np.int32]:
        """Index into ``arrays.ops`` of each flat op, shape (N,)."""
        return np.tile(self.arrays.op, self.rounds)

    @property
    def step(self) -> NDArray[np.int32]:
        """Optimizer step of each flat op, from 0, shape (N,); :attr:`steps` and more are of ops that are left out."""
        first = np.arange(self.rounds, dtype=np.int32)[:, None] * np.int32(self.arrays.period)
        return (first + self.arrays.step).reshape(-1)

    @property
    def num_ops(self) -> int:
        """Ops of the optimizer steps of the run."""
        if self.rounds * self.arrays.period == self.steps:
            return len(self.start_ns)
        return int(np.count_nonzero(self.step < self.steps))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rates:
    """Use of one resource over time, as a step function.

    Attributes
    ----------
    name, kind : str
        of the resource; in a folded run the representative of its class
    multiplicity : int
        resources it stands for
    capacity : float
        [B/s], or nanoseconds a second for a drive
    time_ns : NDArray[int64], shape (k,)
        instants at which something changes [ns]
    used : NDArray[float64], shape (k,)
        rate from that instant on, in the unit of ``capacity``
    users : NDArray[int64], shape (k,)
        activities using it from that instant on
    stands_for : str
        names of the resources that it stands for, as :func:`clustersim.topology.naming.patterns` writes them
    rows : NDArray[int64], shape (multiplicity,)
        their rows in the topology's table; empty where it is not known
    """

    name: str
    kind: str
    multiplicity: int
    capacity: float
    time_ns: NDArray[np.int64]
    used: NDArray[np.float64]
    users: NDArray[np.int64]
    stands_for: str = ""
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Record:
    """Everything that a run leaves behind.

    Attributes
    ----------
    jobs : tuple[Job, ...]
    lanes : tuple[LaneRecord, ...]
        job by job, by representative rank
    lane_of : tuple[NDArray[int64], ...]
        per job, shape (num_ranks,): the lane that stands for each rank
    bounds : tuple[str, ...]
        what ``LaneRecord.bound`` counts in
    coverage : dict[str, float]
        fraction of op time by provenance: measured, interpolated, modelled, assumed; sums to 1
    timed : tuple[TimedWork, ...]
        what the op time is made of
    num_events : int
        instants the engine handled
    status : str
        ``ok``, ``deadlock``, ``limit`` or ``interrupted``
    message : str
        for a run that did not end well: why, such as the wait-for cycle
    """

    jobs: tuple[Job, ...]
    lanes: tuple[LaneRecord, ...]
    lane_of: tuple[NDArray[np.int64], ...]
    bounds: tuple[str, ...]
    coverage: dict[str, float]
    num_events: int
    status: str = "ok"
    message: str = ""
    timed: tuple[TimedWork, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def lane(self, job: int, rank: int) -> LaneRecord:
        """What stands for a rank of a job."""
        return self.lanes[int(self.lane_of[job][rank])]
