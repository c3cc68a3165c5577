"""What holds for the record of every run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.trace.record import LaneRecord
from clustersim.trace.result import Result
from clustersim.workload.job import Job
from clustersim.workload.op import Collective

LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)


@LAW
@given(data=st.data())
def test_one_run(data: st.DataObject, cases: Any) -> None:
    """Streams, rounds, causes and collectives, all of the same run."""
    case = data.draw(cases(16))
    run = case.run(fold=data.draw(st.booleans()))
    ops_of_a_stream_never_overlap(run)
    rounds_follow_each_other(run)
    every_op_has_its_cause(run)
    members_of_a_collective_start_and_end_together(run, case.jobs)


def ops_of_a_stream_never_overlap(run: Result) -> None:
    for lane in run.record.lanes:
        stream = np.tile(lane.arrays.stream, lane.rounds)
        for s in range(len(lane.arrays.streams)):
            on = stream == s
            assert (lane.start_ns[on][1:] >= lane.end_ns[on][:-1]).all()
        assert (lane.end_ns >= lane.start_ns).all()


def rounds_follow_each_other(run: Result) -> None:
    """Each op of a round starts no earlier than in the round before; and every run does all of its ops."""
    for lane in run.record.lanes:
        ends = lane.end_ns.reshape(lane.rounds, -1)
        assert (ends >= 0).all()
        assert (np.diff(lane.start_ns.reshape(lane.rounds, -1), axis=0) >= 0).all()
        assert (np.diff(ends.max(axis=1)) >= 0).all()


def gives(lane: LaneRecord, number: int, pool: str) -> bool:
    """Whether an op gives back to a pool, or to one that is asked for together with it."""
    arrays = lane.arrays
    mine = arrays.pool_use[arrays.pool_use[:, 0] == number % len(arrays)]
    given = {arrays.pools[k] for k in mine[mine[:, 1] == 1, 2]}
    together: dict[int, set[str]] = {}
    for op, at, k, _ in arrays.pool_use.tolist():
        if at == 0:
            together.setdefault(op, set()).add(arrays.pools[k])
    return pool in given or any(pool in pools and pools & given for pools in together.values())


def every_op_has_its_cause(run: Result) -> None:
    """An op starts when what released it ended: what it depends on, or what gave back to the pool that was short."""
    lanes = run.record.lanes
    for lane in lanes:
        assert (lane.start_ns >= lane.ready_ns).all()
        assert (lane.ready_ns >= 0).all()
        pooled = dict(lane.pooled.tolist())
        collective = [isinstance(lane.arrays.ops[k], Collective) for k in lane.ops]
        for op in range(len(lane.start_ns)):
            by, number = int(lane.cause_lane[op]), int(lane.cause_op[op])
            released = int(lanes[by].end_ns[number]) if by >= 0 else 0
            assert released == lane.start_ns[op]
            assert (op in pooled) == (lane.start_ns[op] > lane.ready_ns[op]) or collective[op]
            if op in pooled:
                assert lane.start_ns[op] > lane.ready_ns[op]
                assert gives(lanes[by], number, lane.arrays.pools[pooled[op]])


def members_of_a_collective_start_and_end_together(run: Result, jobs: Sequence[Job]) -> None:
    for j, job in enumerate(jobs):
        for family in job.families:
            for members in family.members.tolist():
                each = set()
                for position, rank in enumerate(members):
                    lane = run.record.lanes[run.record.lane_of[j][rank]]
                    ops = lane.arrays.slots().get(family.slot(position), np.empty(0, np.int64))
                    at = (np.arange(lane.rounds)[:, None] * len(lane.arrays) + ops[None]).reshape(-1)
                    each.add((tuple(lane.start_ns[at].tolist()), tuple(lane.end_ns[at].tolist())))
                assert len(each) == 1


def content(run: Result) -> list[bytes]:
    """Every byte that the engine decided."""
    record = run.record
    columns = ("start_ns", "end_ns", "ready_ns", "cause_lane", "cause_op", "bound")
    kept = [getattr(lane, column).tobytes() for lane in record.lanes for column in columns]
    kept += [repr((lane.job, lane.rank, lane.multiplicity, lane.groups)).encode() for lane in record.lanes]
    kept += [of.tobytes() for of in record.lane_of]
    kept += [repr((record.bounds, record.coverage, record.num_events, record.status)).encode()]
    return kept + [rates.used.tobytes() + rates.time_ns.tobytes() + rates.name.encode() for rates in run.usage]


@settings(LAW, max_examples=30)
@given(data=st.data())
def test_equal_inputs_give_equal_bytes(data: st.DataObject, cases: Any) -> None:
    case, fold = data.draw(cases(16)), data.draw(st.booleans())
    assert content(case.run(fold=fold)) == content(case.run(fold=fold))
