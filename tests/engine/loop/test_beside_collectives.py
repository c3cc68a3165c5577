"""Kernels beside a collective: the closed form of the slowdown, its factors, and switched off."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest

from clustersim.collective.overlap import Overlap
from clustersim.engine.simulate import simulate
from clustersim.trace.result import Result

NS = 6000
"""What each kernel takes alone [ns]; the all-reduce outlasts it."""


def beside(star: ModuleType, overlap: Overlap | None, fold: bool = True, *, crowding: float = 1.0) -> Result:
    """Ranks 0 and 1 run a GEMM, 2 and 3 a sweep of HBM, all beside an all-reduce of 1 MB.

    A ring of four puts 1.5 MB on each 100 B/ns link: 15,000 ns. It takes 24 of 100 SMs.
    """
    programs = []
    for op in (star.gemm(NS), star.gemm(NS), star.sweep(NS), star.sweep(NS)):
        p = star.program(op)
        p.add(star.collective("all_reduce", 1_000_000), stream="dp")
        programs.append(p)
    job = star.job(*programs, families=(star.groups("dp", range(4)),))
    cluster = star.cluster(1, 4)
    cluster = replace(cluster, gpus=tuple(replace(gpu, crowding=crowding) for gpu in cluster.gpus))
    return simulate(cluster, job, fold=fold, overlap=overlap)


def joint_ns(run: Result, star: ModuleType) -> int:
    return int(star.times(run, 0)["all_reduce"][1])


def test_the_slowdown_is_the_closed_form(star: ModuleType) -> None:
    """n/(n - k) of the SM-bound kernel; the sweep has what the collective leaves of HBM.

    A ring of four moves 2·S + 4·3/4·S = 5 S through each HBM, 5,000,000 B in 15,000 ns: a third of 1000 B/ns.
    """
    run = beside(star, None)
    assert joint_ns(run, star) == 15_000
    assert star.times(run, 0)["gemm"] == (0, -(-NS * 100 // 76))
    assert star.times(run, 2)["sweep"] == (0, NS * 3 // 2)


@pytest.mark.parametrize("sm", [0.25, 0.5, 1.0, 2.0])
def test_the_factor_on_sms_is_in_the_closed_form(star: ModuleType, sm: float) -> None:
    taken = round(24 * sm)
    assert star.times(beside(star, Overlap(sm=sm)), 0)["gemm"] == (0, -(-NS * 100 // (100 - taken)))


@pytest.mark.parametrize("fold", [True, False])
@pytest.mark.parametrize("crowding", [0.5, 2.8])
def test_crowding_multiplies_what_is_lost(star: ModuleType, crowding: float, fold: bool) -> None:
    """NS · (1 + 2.8 · 24 / 76): what lasts longer than alone, 2.8 times over."""
    run = beside(star, None, fold=fold, crowding=crowding)
    assert star.times(run, 0)["gemm"] == (0, -(-(NS * 76 + round(NS * crowding) * 24) // 76))
    assert joint_ns(run, star) == 15_000


@pytest.mark.parametrize("hbm", [0.5, 1.0, 1.5])
def test_the_factor_on_memory_is_in_the_closed_form(star: ModuleType, hbm: float) -> None:
    assert star.times(beside(star, Overlap(hbm=hbm)), 2)["sweep"] == (0, round(NS / (1 - hbm / 3)))


def test_switched_off_kernels_take_as_long_as_alone(star: ModuleType) -> None:
    run = beside(star, Overlap(sm=0, hbm=0))
    assert star.times(run, 0)["gemm"] == (0, NS)
    assert star.times(run, 2)["sweep"] == (0, NS)
    assert joint_ns(run, star) == 15_000


def test_each_factor_is_for_its_own_resource(star: ModuleType) -> None:
    on = beside(star, None)
    only_sm, only_hbm = beside(star, Overlap(hbm=0)), beside(star, Overlap(sm=0))
    assert star.times(only_sm, 0) == star.times(on, 0)
    assert star.times(only_sm, 2)["sweep"] == (0, NS)
    assert star.times(only_hbm, 0)["gemm"] == (0, NS)
    assert star.times(only_hbm, 2) == star.times(on, 2)


@pytest.mark.parametrize("overlap", [Overlap(sm=0), Overlap(hbm=0), Overlap(sm=1.7, hbm=2.5)])
def test_folding_stays_exact(star: ModuleType, overlap: Overlap) -> None:
    folded, full = beside(star, overlap), beside(star, overlap, fold=False)
    assert len(folded.record.lanes) < len(full.record.lanes)
    assert [star.times(folded, rank) for rank in range(4)] == [star.times(full, rank) for rank in range(4)]


def test_the_factors_are_with_the_result(star: ModuleType) -> None:
    run = beside(star, Overlap(sm=0.5))
    assert run.inputs["overlap"] == {"sm": 0.5, "hbm": 1.0}
    program = star.program(star.gemm(1))
    as_mapping = simulate(star.cluster(1, 1), star.job(program), overlap=run.inputs["overlap"])
    assert np.array_equal(as_mapping.record.lanes[0].end_ns, [1])
    assert as_mapping.inputs["overlap"] == run.inputs["overlap"]
