"""Leaving out resources that cannot bind, and watching only ops that can be slowed, never changes a result."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.engine.engine import Engine
from clustersim.engine.perturb import Perturbation, perturbed
from clustersim.engine.scene.fold import folded_scene
from clustersim.engine.scene.full import full_scene
from clustersim.engine.scene.live import Live, find_live
from clustersim.engine.system.build import build
from clustersim.engine.system.system import System
from clustersim.hardware.roofline import roofline


def played(system: System, live: Live, rounds: list[int], fold: bool) -> list[list[tuple[list[int], list[int]]]]:
    """(start, end) of every op of every rank of every job [ns]."""
    launch_of = np.repeat(np.arange(len(system.jobs)), np.diff(system.first_rank))
    scene = folded_scene(system, live, launch_of) if fold else full_scene(system, live)
    engine = Engine(scene, rounds)
    for job in range(len(system.jobs)):
        engine.launch(job)
    engine.run()
    return [[(engine.lanes[k].start.tolist(), engine.lanes[k].end.tolist()) for k in of] for of in scene.lane_of]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=40)
@given(data=st.data())
def test_what_cannot_bind_may_leave(data: st.DataObject, cases: Any) -> None:
    case, fold = data.draw(cases(32)), data.draw(st.booleans())
    topology = perturbed(case.topology, Perturbation.parse(case.perturb))
    slow = [case.perturb["slow_ranks"], {}][: len(case.jobs)]
    system = build(topology, case.jobs, roofline, slow)
    rounds = [case.rounds] * len(case.jobs)
    everything = Live(rows=np.ones(len(topology.resources), dtype=bool), crowded={})
    found = find_live(system, rounds)
    assert not found.rows.all()
    assert played(system, found, rounds, fold) == played(system, everything, rounds, fold)
