"""The clock that a power limit leaves to a kernel."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import pytest

from clustersim.engine.simulate import simulate
from clustersim.hardware.power import Power
from clustersim.trace.result import Result

NS = 64_000
"""What each kernel takes at full clock [ns]; the card's units are at their peak meanwhile."""

ROOM = Power(limit=200.0, idle=100.0, matrix=100.0, memory=50.0)
TIGHT = replace(ROOM, matrix=100.0 * (4 / 3) ** 3)
"""Products one after another fit at 3/4 of the clock: 100 W · (4/3)³ · (3/4)³ = 100 W."""


def run(star: ModuleType, power: Power | None, *ops: object, fold: bool = True) -> Result:
    cluster = star.cluster(1, 2, gpus=(replace(star.CARD, power=power),))
    return simulate(cluster, star.job(star.program(*ops), star.program(*ops)), fold=fold)


def test_within_the_limit_nothing_changes(star: ModuleType) -> None:
    free, limited = (run(star, power, star.gemm(NS)) for power in (None, ROOM))
    assert star.times(free, 0) == star.times(limited, 0) == {"gemm": (0, NS)}


def test_products_alone_run_at_the_clock_that_fits(star: ModuleType) -> None:
    assert star.times(run(star, TIGHT, star.gemm(NS)), 0)["gemm"] == (0, -(-NS * 4 // 3))


def test_what_stands_between_products_does_not_change_their_clock(star: ModuleType) -> None:
    times = star.times(run(star, TIGHT, star.gemm(NS), star.sweep(NS)), 0)
    assert times["gemm"] == (0, -(-NS * 4 // 3))
    assert times["sweep"][1] - times["sweep"][0] == NS


def test_a_product_that_waits_for_memory_takes_as_long_at_a_lower_clock(star: ModuleType) -> None:
    """118 W of its matrix units and 50 W of memory are too many at full clock, at 5/8 of it they fit."""
    assert star.times(run(star, TIGHT, star.gemm(NS // 2, nbytes=1000 * NS)), 0)["gemm"] == (0, NS)


@pytest.mark.parametrize("power", [ROOM, TIGHT])
def test_folded_and_full_agree(star: ModuleType, power: Power) -> None:
    folded, full = (run(star, power, star.gemm(NS), star.sweep(NS), fold=fold) for fold in (True, False))
    assert star.times(folded, 0) == star.times(full, 0) == star.times(full, 1)


@pytest.mark.parametrize("factor", [1.1, 2.0])
def test_a_slow_rank_takes_its_factor_and_keeps_the_clock(star: ModuleType, factor: float) -> None:
    """The lower rate of a straggler gives it no higher clock: it would be less slow than was asked for."""
    cluster = star.cluster(1, 2, gpus=(replace(star.CARD, power=TIGHT),))
    job = star.job(*[star.program(star.gemm(NS), star.sweep(NS))] * 2)
    times = star.times(simulate(cluster, job), 1)
    slow = star.times(simulate(cluster, job, perturb={"slow_ranks": {1: factor}}), 1)
    for name, (start, end) in times.items():
        assert slow[name][1] - slow[name][0] == pytest.approx(factor * (end - start), abs=1)
