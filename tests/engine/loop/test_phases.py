"""Collectives whose phases follow one another: each phase on its own resources, one op in the record."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.engine.engine import Engine
from clustersim.engine.perturb import Perturbation, perturbed
from clustersim.engine.scene.live import find_live
from clustersim.engine.simulate import simulate
from clustersim.engine.system.build import build
from clustersim.hardware.roofline import roofline
from clustersim.trace.result import Result
from clustersim.workload.job import Job

BOTH = pytest.mark.parametrize("fold", [False, True])


def in_then_out(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Of two nodes of two: S over NVLink to the other member of the node, then S/10 over NICs to the other node.

    On links of 100 and 10 B/ns both take S/100 ns. Each member moves as much in HBM as it sends and receives.
    """
    inside = Phase(source=np.array([0, 2]), destination=np.array([1, 3]), nbytes=np.full(2, nbytes), num_steps=1)
    between = Phase(source=np.array([0, 1]), destination=np.array([2, 3]), nbytes=np.full(2, nbytes // 10), num_steps=1)
    memory = np.full(4, nbytes + nbytes // 10)
    return Traffic(algorithm="own", phases=(inside, between), pipelined=False, memory_nbytes=memory, num_sms=20)


def calls(star: ModuleType, *starts: int) -> Job:
    """One of 1000 + 1000 ns a stream, each after a delay."""
    programs = []
    for _ in range(4):
        program = star.program()
        for i, start in enumerate(starts):
            program.add(star.delay(start), stream=f"{i}")
            op = star.collective("all_reduce", 100_000, f"slot {i}", name=f"call {i}", algorithm=in_then_out)
            program.add(op, stream=f"{i}")
        programs.append(program)
    job: Job = star.job(*programs, families=tuple(star.groups(f"slot {i}", range(4)) for i in range(len(starts))))
    return job


def used(run: Result, name: str) -> list[tuple[int, float]]:
    """(instant [ns], rate [B/ns]) of a resource or of the one that stands for it."""
    (rates,) = [rates for rates in run.usage if rates.name == name]
    return list(zip(rates.time_ns.tolist(), (rates.used / 1e9).round(9).tolist(), strict=True))


@BOTH
def test_two_at_once_meet_in_each_phase(star: ModuleType, fold: bool) -> None:
    run = simulate(star.cluster(2, 2), calls(star, 0, 0), fold=fold)
    assert [star.times(run, 3)[f"call {i}"] for i in range(2)] == [(0, 4000)] * 2
    assert used(run, "nvlink0.up") == [(0, 100.0), (2000, 0.0)]
    assert used(run, "nic0.tx") == [(2000, 10.0), (4000, 0.0)]
    lane = run.record.lanes[0]
    assert len(lane.start_ns) == 4, "one entry a call, whatever its phases"
    bound = {run.record.bounds[lane.bound[k]] for k in range(4) if "call" in lane.arrays.ops[lane.ops[k]].name}
    assert bound == {"nic0.tx"}, "what held it last"


@BOTH
def test_one_after_the_other_they_pass(star: ModuleType, fold: bool) -> None:
    run = simulate(star.cluster(2, 2), calls(star, 0, 1000), fold=fold)
    assert [star.times(run, 0)[f"call {i}"] for i in range(2)] == [(0, 2000), (1000, 3000)]
    assert used(run, "nvlink0.up") == [(0, 100.0), (1000, 100.0), (2000, 0.0)]


@BOTH
def test_alone_it_uses_each_link_in_its_phase(star: ModuleType, fold: bool) -> None:
    run = simulate(star.cluster(2, 2), calls(star, 500), fold=fold)
    assert star.times(run, 0)["call 0"] == (500, 2500)
    assert used(run, "nvlink0.up") == [(500, 100.0), (1500, 0.0)]
    assert used(run, "nic0.tx") == [(1500, 10.0), (2500, 0.0)]
    assert used(run, "hbm0") == [(500, 100.0), (1500, 10.0), (2500, 0.0)]


@BOTH
def test_kernels_beside_feel_memory_by_phase_and_sms_throughout(star: ModuleType, fold: bool) -> None:
    """The sweep of 1,000,000 B has 900 B/ns for 1000 ns, then 990; the GEMM of 2000 ns 80 of 100 SMs for 2000 ns."""
    for op, end in ((star.sweep(1000), 1000 + -(-100_000 // 990)), (star.gemm(2000), 2400)):
        job = calls(star, 0)
        for program in job.programs:
            program.add(op, stream="kernels")
        run = simulate(star.cluster(2, 2), job, fold=fold)
        assert star.times(run, 0)[op.name] == (0, end)
        assert star.times(run, 0)["call 0"] == (0, 2000)


@BOTH
def test_memory_that_one_phase_is_short_of_is_watched(star: ModuleType, fold: bool) -> None:
    """A GEMM that asks 920 B/ns of HBM has 900 beside the first phase; beside the mean of both it would fit."""
    job = calls(star, 0)
    for program in job.programs:
        program.add(star.gemm(3000, nbytes=920 * 3000), stream="kernels")
    run = simulate(star.cluster(2, 2), job, fold=fold, overlap={"sm": 0})
    assert star.times(run, 0)["gemm"] == (0, 1000 + -(-(3000 * 920 - 1000 * 900) // 920))


@BOTH
@pytest.mark.parametrize("starts", [(0,), (0, 0)])
def test_cancelled_in_a_phase_it_has_moved_what_it_moved(star: ModuleType, fold: bool, starts: tuple[int, ...]) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.at(1500 * len(starts), lambda engine: engine.cancel(0))

    run = simulate(star.cluster(2, 2), calls(star, *starts), fold=fold, behaviour=behaviour)
    moved = {r.name: float(np.sum(r.used[:-1] * np.diff(r.time_ns)) / 1e9) for r in run.usage}
    assert moved["nvlink0.up"] == pytest.approx(100_000 * len(starts))
    assert moved["nic0.tx"] == pytest.approx(5_000 * len(starts))


def back_and_forth(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """S from the first to the second, then S back: over both phases all NICs carry the same."""
    one, other = np.array([0]), np.array([1])
    nbytes_of = np.array([nbytes])
    phases = tuple(
        Phase(source=a, destination=b, nbytes=nbytes_of, num_steps=1) for a, b in ((one, other), (other, one))
    )
    return Traffic(algorithm="own", phases=phases, pipelined=False, memory_nbytes=np.zeros(2, np.int64))


def test_folding_tells_phases_apart(star: ModuleType) -> None:
    """Ranks 0 and 1 exchange, each sends a message: rank 0's meets the first phase, rank 1's has left by the second."""
    send = star.collective("send", 10_000, "out")
    pair = star.collective("all_reduce", 100_000, algorithm=back_and_forth)
    programs: list[Any] = []
    for op in (send, send, star.collective("recv", 10_000, "in"), star.collective("recv", 10_000, "in")):
        program = star.program(op, stream="message")
        if op is send:
            program.add(pair, stream="pair")
        programs.append(program)
    job = star.job(*programs, families=(star.groups("dp", [0, 1]), star.groups(("out", "in"), [0, 2], [1, 3])))
    full, folded = (simulate(star.cluster(4, 1), job, fold=fold) for fold in (False, True))
    assert [star.times(full, rank)["send"] for rank in (0, 1)] == [(0, 2000), (0, 1000)]
    assert all(star.times(folded, rank) == star.times(full, rank) for rank in range(4))


def test_a_resource_that_one_phase_fills_stays(star: ModuleType) -> None:
    """Over its whole length the exchange has half of each NIC, and a message into a slow NIC the other half.

    In its first phase it has all of rank 0's: 2000 ns at half speed beside the message cost it 1000 ns.
    """
    pair = star.collective("all_reduce", 100_000, algorithm=back_and_forth)
    programs = [star.program(pair), star.program(pair), star.program()]
    for program, (kind, slot) in zip(programs[::2], (("send", "out"), ("recv", "in")), strict=True):
        program.add(star.collective(kind, 10_000, slot), stream="message")
    job = star.job(*programs, families=(star.groups("dp", [0, 1]), star.groups(("out", "in"), [0, 2])))
    cluster = perturbed(star.cluster(4, 1), Perturbation.parse({"slow_links": {"nic2.rx": 0.5}}))
    rows = find_live(build(cluster, [job], roofline, [{}]), [1]).rows
    assert cluster.resources.names(np.flatnonzero(rows)) == ["nic0.tx"]
    run = simulate(cluster, job)
    assert (star.times(run, 0)["send"], star.times(run, 0)["all_reduce"]) == ((0, 2000), (0, 21_000))
