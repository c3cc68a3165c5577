"""A program of several optimizer steps."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.workload.check import check
from clustersim.workload.issue import issue
from clustersim.workload.job import Job, Pool
from clustersim.workload.op import Compute, Copy, HostLaunch
from clustersim.workload.program import Program


def op(name: str = "mlp") -> Compute:
    return Compute(name=name, kind="mlp", kernels=())


def steps(*counts: int, last_is_ended: bool = False) -> Program:
    """So many ops in each step."""
    program = Program(f"{len(counts)} steps")
    for k, count in enumerate(counts):
        for _ in range(count):
            program.add(op(), stream="compute", phase="forward", micro_batch=0, layer=0)
        if k < len(counts) - 1 or last_is_ended:
            program.end_step()
    return program


def test_a_program_is_one_step_unless_it_says_otherwise() -> None:
    assert (steps(3).period, steps(3).arrays().period) == (1, 1)
    assert Program().period == Program().arrays().period == 1


@pytest.mark.parametrize("ended", [False, True])
def test_the_last_step_need_not_be_ended(ended: bool) -> None:
    program = steps(2, 1, 3, last_is_ended=ended)
    assert program.period == 3
    assert program.arrays().step.tolist() == [0, 0, 1, 2, 2, 2]
    assert program.arrays().digest == steps(2, 1, 3).arrays().digest


def test_a_step_may_be_empty() -> None:
    assert steps(1, 0, 1).arrays().step.tolist() == [0, 2]
    assert steps(1, 0, last_is_ended=True).period == 2


def test_programs_that_differ_in_their_steps_differ() -> None:
    assert len({steps(*counts).arrays().digest for counts in [(3,), (2, 1), (1, 2), (1, 1, 1)]}) == 4


def test_a_fragment_goes_on_with_the_step() -> None:
    program = steps(1, 1)
    program.extend(steps(1, 2))
    program.extend(steps(1), micro_batch=3)
    assert program.arrays().step.tolist() == [0, 1, 1, 2, 2, 2]
    assert program.arrays().micro_batch.tolist() == [0, 0, 0, 0, 0, 3]


def test_fragments_of_several_steps_are_not_woven() -> None:
    with pytest.raises(ValueError, match="weave: 2 steps ends a step"):
        Program().weave([steps(1), steps(1, 1)], micro_batches=[0, 1])


def test_an_op_may_join_an_earlier_step() -> None:
    program = steps(1, 1)
    program.add(op(), stream="host", step=0)
    assert program.arrays().step.tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="step=2 must be one from 0 to 1"):
        program.add(op(), stream="host", step=2)


def test_calls_of_the_host_belong_to_the_step_that_they_issue() -> None:
    program = steps(2, 1)
    issue(program, "eager")
    arrays = program.arrays()
    calls = [k for k in range(len(arrays)) if isinstance(arrays.ops[arrays.op[k]], HostLaunch)]
    assert [int(arrays.step[k]) for k in calls] == [0, 1]


def test_programs_of_a_job_cover_as_many_steps() -> None:
    job = Job(name="job", programs=(steps(1, 1), steps(1)), program_of=np.array([0, 1]))
    assert job.period == 2
    (fault,) = check(job)
    assert (fault.key, fault.value, fault.nearest) == ("1 steps.period", 1, 2)
    nobody = Job(name="job", programs=(steps(1, 1), Program()), program_of=np.array([0, 1]))
    assert check(nobody) == []


def test_bytes_are_held_in_a_tier() -> None:
    program = steps(1)
    program.resident |= {"host/optimizer": 1, "gpu": 2, "nvme/optimizer": 3}
    faults = check(Job(name="job", programs=(program,), program_of=np.array([0])))
    assert [(fault.key, fault.value) for fault in faults] == [
        ("1 steps.memory", "host/optimizer"),
        ("1 steps.memory", "gpu"),
    ]


def test_more_than_a_pool_ever_has_is_refused() -> None:
    program = Program("role")
    copy = Copy(name="stage", kind="d2h", nbytes=1)
    for amount in (2, 3, 4):
        program.add(copy, stream="copy", takes={"pinned": amount}, gives={"pinned": amount})
    pools = {"pinned": Pool(capacity=2)}
    (fault,) = check(Job(name="job", programs=(program,), program_of=np.array([0]), pools=pools))
    assert (fault.key, fault.value, fault.nearest) == ("role.pinned", 3, 2)


def test_many_ops_at_once_are_as_one_by_one() -> None:
    kinds = [op("b"), op("a")]
    single, whole = steps(2, 2), steps(2, 2)
    hosts = [
        single.add(kinds[k], stream="host", phase="forward", micro_batch=0, layer=0, step=s)
        for k, s in [(1, 0), (0, 1)]
    ]
    assert whole.add_like(np.array([0, 2]), kinds, np.array([1, 0]), stream="host").tolist() == hosts
    for before, after in zip(hosts, (1, 3), strict=True):
        single.depend(after, after=[before])
    whole.depend_all(np.array(hosts), np.array([1, 3]))
    assert whole.arrays().digest == single.arrays().digest


@pytest.mark.parametrize(("before", "after"), [(0, 3), (3, 0), (-1, 0)])
def test_waits_name_ops_of_the_program(before: int, after: int) -> None:
    with pytest.raises(ValueError, match="must name ops of this program"):
        steps(3).depend_all(np.array([before]), np.array([after]))


@pytest.mark.parametrize("length", [1, 2, 12])
def test_a_cycle_among_ops_that_were_added_later_is_found(length: int) -> None:
    """A chain of calls, each before an op that stands before it; the first then waits for the last of these ops."""
    program = steps(length)
    calls = [program.add(op("call"), stream="host") for _ in range(length)]
    program.depend_all(np.array(calls), np.arange(length))
    job = Job(name="job", programs=(program,), program_of=np.array([0]))
    assert not check(job)
    program.depend(calls[0], after=[length - 1])
    (fault,) = check(job)
    assert "cycle" in fault.rule
    assert f"{calls[0]} call" in str(fault.value)
