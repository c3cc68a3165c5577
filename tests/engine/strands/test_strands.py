"""Chains of ops on a lane: their times are those of one op after the other, whatever comes beside them."""

from __future__ import annotations

from types import ModuleType

import pytest

from clustersim.engine.engine import Engine
from clustersim.engine.simulate import simulate
from clustersim.trace.result import Result

FOLD = pytest.mark.parametrize("fold", [True, False])


def kernels(run: Result) -> list[tuple[int, int]]:
    """(start, end) of the ops of rank 0 on the stream of its kernels."""
    lane = run.record.lanes[int(run.record.lane_of[0][0])]
    mine = lane.arrays.stream == lane.arrays.streams.index("main")
    return list(zip(lane.start_ns[mine].tolist(), lane.end_ns[mine].tolist(), strict=True))


@FOLD
def test_a_collective_beside_a_chain_slows_what_it_meets(star: ModuleType, fold: bool) -> None:
    """An all-reduce takes 24 of 100 SMs from 2500 to 17,500 ns.

    Half of the third kernel is left at 2500 ns: 500 · 100/76 = 657.9 ns. Ten of 1315.8 ns follow, each rounded up. Of
    the next, begun at 16,318 ns, 1182 · 0.76 = 898.3 ns are done when the SMs come back.
    """
    p = star.program(*[star.gemm(1000, name=f"k{k}") for k in range(20)])
    wait = p.add(star.delay(2500), stream="dp")
    p.add(star.collective("all_reduce", 1_000_000), stream="dp", after=[wait])
    job = star.job(*[p] * 4, families=(star.groups("dp", range(4)),))
    run = simulate(star.cluster(1, 4), job, fold=fold)
    assert star.times(run, 0)["all_reduce"] == (2500, 17_500)
    ends = [
        1000,
        2000,
        3158,
        *[3158 + 1316 * k for k in range(1, 11)],
        17_602,
        *[17_602 + 1000 * k for k in range(1, 7)],
    ]
    assert kernels(run) == list(zip([0, *ends[:-1]], ends, strict=True))
    assert run.record.num_events < len(ends)


@FOLD
def test_a_cancelled_chain_ends_where_it_is(star: ModuleType, fold: bool) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.at(450, lambda engine: engine.cancel(0))

    job = star.job(star.program(*[star.gemm(100, name=f"k{k}") for k in range(8)]))
    run = simulate(star.cluster(1, 1), job, behaviour=behaviour, fold=fold)
    assert kernels(run) == [(0, 100), (100, 200), (200, 300), (300, 400), (400, 450), *[(-1, -1)] * 3]


@FOLD
def test_a_chain_that_forks_and_joins(star: ModuleType, fold: bool) -> None:
    """Two branches of unequal length between kernels; the last waits for both."""
    p = star.program(star.gemm(100, name="a"), star.gemm(100, name="b"))
    left = [p.add(star.gemm(50, name="c"), stream="left", after=[1])]
    left.append(p.add(star.gemm(70, name="d"), stream="left"))
    right = p.add(star.gemm(300, name="e"), stream="right", after=[1])
    p.add(star.gemm(10, name="f"), stream="main", after=[left[-1], right])
    run = simulate(star.cluster(1, 1), star.job(p), fold=fold)
    expected = {"a": (0, 100), "b": (100, 200), "c": (200, 250), "d": (250, 320), "e": (200, 500), "f": (500, 510)}
    assert star.times(run, 0) == expected


def test_an_edge_that_others_imply_does_not_break_a_chain(star: ModuleType) -> None:
    """c waits for b, and for a through b: one event at the end of all three."""
    p = star.program(star.gemm(100, name="a"))
    p.add(star.gemm(100, name="b"), stream="side", after=[0])
    p.add(star.gemm(100, name="c"), stream="main", after=[1])
    run = simulate(star.cluster(1, 1), star.job(p))
    assert star.times(run, 0) == {"a": (0, 100), "b": (100, 200), "c": (200, 300)}
    assert run.record.num_events == 1  # the launch, which tells all ends
