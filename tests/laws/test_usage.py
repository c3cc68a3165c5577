"""What the counters say was moved is what the ops put on the links, and never more at once than a link carries."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from clustersim.engine.simulate import simulate
from clustersim.engine.system.build import build
from clustersim.engine.system.system import System
from clustersim.hardware.roofline import roofline
from clustersim.trace.record import Rates
from clustersim.trace.result import Result

LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)


def put_on(system: System, rounds: int) -> NDArray[np.int64]:
    """Bytes that all ops together put on each resource."""
    total = np.zeros(len(system.topology.resources), dtype=np.int64)
    for edges in system.path_edges:
        arrays = system.programs[edges.program]
        np.add.at(total, edges.rows, int(edges.loads[arrays.op].sum()))
    for block in system.blocks:
        np.add.at(total, block.cost.row, block.cost.load[:, block.script].sum(axis=1))
    return total * rounds


def integral(rates: Rates) -> float:
    return float(np.sum(rates.used[:-1] * np.diff(rates.time_ns)) / 1e9)


def by_resource(run: Result) -> list[tuple[str, float, int]]:
    """(kind, capacity, bytes) of every resource that was used, whatever class stands for it."""
    return sorted((r.kind, r.capacity, round(integral(r))) for r in run.usage for _ in range(r.multiplicity))


@LAW
@given(data=st.data())
def test_bytes_are_conserved_and_no_resource_carries_more_than_it_can(data: st.DataObject, cases: Any) -> None:
    case = data.draw(cases(16))
    run = case.run(fold=data.draw(st.booleans()))
    slow = [case.perturb["slow_ranks"], {}][: len(case.jobs)]
    resources = run.topology.resources
    expected = put_on(build(run.topology, case.jobs, roofline, slow), case.rounds)
    for rates in run.usage:
        assert integral(rates) == pytest.approx(expected[resources.find(rates.name)], rel=1e-6)
    assert sum(rates.multiplicity for rates in run.usage) == np.count_nonzero(expected)
    used = [
        (resources.kinds[resources.kind[row]], float(resources.capacity[row]), int(expected[row]))
        for row in np.flatnonzero(expected)
    ]
    assert by_resource(run) == sorted(used)
    for rates in run.usage:
        assert rates.used.max() <= rates.capacity * (1 + 1e-9)
        assert rates.used.min() >= 0
        assert rates.used[-1] == 0
        assert (np.diff(rates.time_ns) > 0).all()


@LAW
@given(data=st.data())
def test_usage_does_not_depend_on_folding(data: st.DataObject, cases: Any) -> None:
    case = data.draw(cases(16))
    assert by_resource(case.run(fold=True)) == by_resource(case.run(fold=False))


def test_nothing_is_used_where_nothing_is_moved(star: ModuleType) -> None:
    """A group whose collectives have no bytes puts nothing on any resource."""
    program = star.program(star.delay(100), star.collective("all_reduce", 0))
    job = star.job(program, program, families=(star.groups("dp", [0, 1]),))
    assert simulate(star.cluster(1, 2), job).usage == []
