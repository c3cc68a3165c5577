"""Knots: ops that run beside each other in the same way again and again are played as one, with the times of each.

Four ranks that are alike are one lane, whose all-gathers meet nobody, so its knots are tied. In the full run the same
all-gathers have four members and nothing is tied: it is what the folded run is held against.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from clustersim.engine.engine import Engine
from clustersim.engine.simulate import simulate
from clustersim.trace.result import Result
from clustersim.workload.job import Job
from clustersim.workload.program import Program

LAYERS = 12


def layer(star: ModuleType, p: Program, parts: int, nbytes: int, *, memory: int = 0) -> None:
    """Products in parts beside all-gathers of what they read, between two kernels."""
    p.add(star.gemm(400, name="before"), stream="main")
    product = exchange = len(p) - 1
    for _ in range(parts):
        product = p.add(star.gemm(1000, nbytes=memory, name="part"), stream="main", after=[product, exchange])
        exchange = p.add(star.collective("all_gather", nbytes, "tp"), stream="tp", after=[exchange])
    p.add(star.gemm(300, name="behind"), stream="main", after=[product, exchange])


def exchanges(star: ModuleType, p: Program, nbytes: int) -> None:
    """A product between exchanges on two streams: kernels wait for the exchanges and for the kernel before these."""
    p.add(star.gemm(400, name="before"), stream="main")
    for slots in (("ep", "tp"), ("tp", "ep")):
        for slot in slots:
            p.add(star.collective("all_gather", nbytes, slot), stream=slot, after=[len(p) - 1])
        p.add(star.gemm(300, name="behind"), stream="main", after=[len(p) - 1])


def stages(star: ModuleType, *, nbytes: int = 40_000, memory: int = 0, told: int = 0, parts: int = 3) -> Job:
    """Two stages of four ranks each; the first sends messages to the second, at instants that fall into knots."""
    programs = []
    for sends in (True, False):
        p = Program(f"stage {int(not sends)}")
        heads = []
        for number in range(LAYERS):
            heads.append(len(p))
            if parts:
                layer(star, p, parts, nbytes, memory=memory)
            else:
                exchanges(star, p, nbytes)
            if number % 4 == 3:
                wait = p.add(star.delay(137 * number), stream="side", after=[len(p) - 1])
                kind, slot = ("send", "out") if sends else ("recv", "in")
                p.add(star.collective(kind, 30_000, slot, algorithm=None), stream=slot, after=[wait])
        for head in heads if told else ():
            for ops in (
                (head, head + 2),
                (head + 7,),
            ):  # the kernel before a knot and its first exchange; that behind it
                host = p.add(star.delay(told, name="host"), stream="host")
                for op in ops:
                    p.depend(op, after=[host])
        programs.append(p)
    made: Job = star.job(
        *[programs[0]] * 4,
        *[programs[1]] * 4,
        families=(
            star.groups("tp", range(4), range(4, 8)),
            star.groups("ep", range(4), range(4, 8)),
            star.groups(("out", "in"), *[(rank, rank + 4) for rank in range(4)]),
        ),
    )
    return made


def run(star: ModuleType, job: Job, *, fold: bool, **settings: Any) -> Result:
    return simulate(star.cluster(2, 4), job, fold=fold, steps=2, **settings)


def times(result: Result) -> list[tuple[list[int], list[int], list[str]]]:
    """By rank the starts, ends and bounds of its ops; a resource is that of the rank which stands for its class."""
    lanes = [result.record.lanes[k] for k in result.record.lane_of[0]]
    bounds = [re.sub(r"\d", "", name) for name in result.record.bounds]
    return [(lane.start_ns.tolist(), lane.end_ns.tolist(), [bounds[b] for b in lane.bound]) for lane in lanes]


JOBS = pytest.mark.parametrize(
    "settings",
    [
        {},
        {"nbytes": 120_000},
        {"nbytes": 40_000, "memory": 900_000},
        {"nbytes": 40_000, "memory": 1_000_000},
        {"parts": 0},
        {"told": 50},
        {"told": 2500},
        {"told": 5000},
    ],
    ids=[
        "exchanges wait",
        "products wait",
        "memory is shared",
        "memory is short",
        "exchanges alone",
        "host ahead",
        "host beside",
        "host late",
    ],
)


@JOBS
def test_folded_with_knots_is_full_without(star: ModuleType, settings: dict[str, int]) -> None:
    job = stages(star, **settings)
    folded, full = (run(star, job, fold=fold) for fold in (True, False))
    assert len(folded.record.lanes) == 2
    assert times(folded) == times(full)
    if "told" not in settings or settings["told"] < 1000:  # a late host is waited for in front of every knot
        assert folded.record.num_events < full.record.num_events / 2


@JOBS
def test_what_is_used_is_the_same(star: ModuleType, settings: dict[str, int]) -> None:
    job = stages(star, **settings)
    used = []
    for fold in (True, False):
        amounts: dict[str, float] = {}
        for rates in run(star, job, fold=fold).rates():
            amount = float((rates.used[:-1] * np.diff(rates.time_ns)).sum()) * rates.multiplicity
            amounts[rates.kind] = amounts.get(rates.kind, 0.0) + amount
        used.append(amounts)
    assert used[0] == pytest.approx(used[1], rel=1e-9)


@JOBS
@pytest.mark.parametrize("at", [900, 3333, 10_000, 20_001, 31_415])
def test_a_job_that_is_cancelled_in_a_knot(star: ModuleType, settings: dict[str, int], at: int) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.at(at, lambda engine: engine.cancel(0))

    job = stages(star, **settings)
    assert times(run(star, job, fold=True, behaviour=behaviour)) == times(
        run(star, job, fold=False, behaviour=behaviour)
    )


@pytest.mark.parametrize("simulated_s", [5e-6, 1.2345e-5, 2.6e-5])
def test_a_run_that_is_stopped_in_a_knot(star: ModuleType, simulated_s: float) -> None:
    results = [run(star, stages(star), fold=fold, limits={"simulated_s": simulated_s}) for fold in (True, False)]
    assert [result.record.status for result in results] == ["limit", "limit"]
    assert times(results[0]) == times(results[1])


def test_another_job_on_the_same_memory_leaves_nothing_tied(star: ModuleType) -> None:
    """Two jobs share each GPU's memory, so what one of them does beside itself is not all there is."""
    jobs = [stages(star, memory=900_000), star.job(*[star.program(*[star.sweep(700)] * 20)] * 8, name="other")]
    results = [simulate(star.cluster(2, 4), jobs, fold=fold) for fold in (True, False)]
    assert times(results[0]) == times(results[1])


def test_capacities_that_change_leave_nothing_tied(star: ModuleType) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.at(8000, lambda engine: engine.set_capacity("hbm1", 6e11))
        engine.at(15_000, lambda engine: engine.set_capacity("hbm1", 1e12))

    job = stages(star, memory=900_000)
    results = [run(star, job, fold=fold, behaviour=behaviour, varying=["hbm1"]) for fold in (True, False)]
    assert times(results[0]) == times(results[1])
