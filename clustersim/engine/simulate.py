"""Simulate jobs on a cluster: the one door of the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import lcm
from numbers import Integral
from typing import Any

import numpy as np

from clustersim.collective.overlap import Overlap
from clustersim.collective.traffic import Algorithm
from clustersim.engine.deadlock import Deadlock
from clustersim.engine.engine import Engine
from clustersim.engine.limits import LimitReached, Limits
from clustersim.engine.perturb import Perturbation, perturbed
from clustersim.engine.record.chosen import chosen
from clustersim.engine.record.recording import record
from clustersim.engine.record.usage import usage
from clustersim.engine.scene.full import full_scene
from clustersim.engine.scene.live import find_live
from clustersim.engine.system.build import build
from clustersim.engine.system.noise import Noise
from clustersim.engine.system.system import System
from clustersim.faults import BadInput, Fault
from clustersim.garbage import uncollected
from clustersim.hardware.kernel import CostModel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.job import Job

__all__ = ["simulate"]


@uncollected()
def simulate(
    cluster: Topology,
    jobs: Job | Sequence[Job],
    *,
    steps: int | None = None,
    seed: int = 0,
    fold: bool = True,
    perturb: Mapping[str, Any] | None = None,
    limits: Limits | Mapping[str, float] | None = None,
    cost: CostModel = kernel_cost,
    algorithms: Mapping[str, str | Algorithm] | None = None,
    overlap: Overlap | Mapping[str, float] | None = None,
    behaviour: Callable[[Engine], None] | None = None,
    varying: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
    shuffle: Callable[[list[object]], None] | None = None,
) -> Result:
    """Run one job or several on a cluster.

    Parameters
    ----------
    cluster : Topology
        what they run on
    jobs : Job or sequence of Job
        all launched at time 0, unless ``behaviour`` launches them
    steps : int, optional
        optimizer steps, back to back. Whole rounds of a job's programs are played, and the first ``steps`` recorded. By
        default as many as show a steady state: 1, several where work goes on from one step to the next, and two rounds
        of programs that cover several steps
    seed : int
        of all random draws; they are keyed by (seed, rank, op, step), never by the order of drawing
    fold : bool
        simulate one rank of each class of equal ranks; the result is the same, see ``DESIGN.md``
    perturb : Mapping, optional
        ``slow_ranks`` {rank of the first job: factor on its compute time}, ``slow_links`` {name: factor on its
        bandwidth}, ``failed_links`` [names], ``jitter`` (σ of a log-normal factor on what is computed)
    limits : Limits or Mapping, optional
        when to stop early
    cost : CostModel
        seconds of a kernel on a GPU; a :class:`~clustersim.hardware.kernel_table.KernelTable` puts measurements first
    algorithms : Mapping[str, str or Algorithm], optional
        kind of collective -> the algorithm of its ops that pin none: {"all_reduce": "tree"}, or a callable of one's
        own; NCCL's choice for kinds that are left out
    overlap : Overlap or Mapping, optional
        factors on the SMs and the memory bandwidth that collectives take from kernels beside them: {"sm": 0, "hbm": 0}
        switches that off
    behaviour : callable, optional
        called with the engine before the clock starts, instead of launching all jobs at 0: it may use the verbs
        ``launch``, ``cancel``, ``set_capacity`` and ``at``, or start generators on ``engine.env``
    varying : Sequence[str]
        names of resources whose capacity ``behaviour`` may change
    progress : callable, optional
        called now and then with the simulated time [ns]
    shuffle : callable, optional
        permutes events of one instant in place; the result does not depend on it

    Returns
    -------
    Result
        with ``record.status`` ``ok``, ``limit`` or ``interrupted``; the last two keep what had ended by then

    Raises
    ------
    BadInput
        for no step, no job, or one without ops; for jobs that do not fit the cluster; for perturbations, algorithms
        and varying names that name nothing; for factors out of range
    Deadlock
        when ops remain that nothing can start; ``.result`` holds what ran until then
    """
    began = time.perf_counter()
    listed = [jobs] if isinstance(jobs, Job) else list(jobs)
    if steps is None:
        steps = _usual_steps(listed)
    faults = list(_call_faults(listed, steps))
    if faults:
        raise BadInput(faults)
    perturbation = Perturbation.parse(perturb or {})
    topology = perturbed(cluster, perturbation)
    if not isinstance(overlap, Overlap):
        overlap = Overlap.parse(overlap or {})
    slow = [perturbation.slow_ranks if j == 0 else {} for j in range(len(listed))]
    algorithms = algorithms or {}
    noise = Noise(seed=seed, jitter=perturbation.jitter) if perturbation.jitter else None
    system = build(topology, listed, cost, slow, algorithms, overlap, noise)
    declared = _rows(topology, varying)
    rounds = [-(-steps // job.period) for job in listed]
    live = find_live(system, rounds, declared)
    if fold:
        from clustersim.engine.scene.fold import folded_scene

        launch_of = np.repeat(np.arange(len(listed)), np.diff(system.first_rank))
        scene = folded_scene(system, live, launch_of, declared)
    else:
        scene = full_scene(system, live)
    if isinstance(limits, Mapping):
        limits = Limits.parse(limits)
    numbers = {name: scene.row.index(row) for name, row in zip(varying, declared, strict=True)}
    engine = Engine(scene, rounds, limits, shuffle, progress, numbers)
    if behaviour is not None:
        behaviour(engine)
    else:
        for j in range(len(listed)):
            engine.launch(j)
    status, message, failure = "ok", "", None
    try:
        engine.run()
    except KeyboardInterrupt:
        status, message = "interrupted", f"interrupted at {engine.env.now / 1e9:g} s of simulated time"
    except LimitReached as reached:
        status, message = "limit", str(reached)
    except Deadlock as deadlock:
        status, message, failure = "deadlock", str(deadlock), deadlock
    notes = [
        *topology.notes,
        *(note for job in listed for note in job.notes),
        *_notes(system, algorithms, rounds, steps),
    ]
    result = Result(
        record=record(engine, steps, status, message),
        topology=topology,
        fold="exact" if fold else "off",
        wall_s=time.perf_counter() - began,
        warnings=tuple(dict.fromkeys(notes)),
        inputs={
            "seed": seed,
            "steps": steps,
            "perturb": perturbation.as_dict(),
            "overlap": asdict(overlap),
            "algorithms": {kind: getattr(pinned, "__name__", str(pinned)) for kind, pinned in algorithms.items()},
        },
        rates=lambda: usage(engine),
        chosen=lambda: chosen(system),
    )
    if failure is not None:
        failure.result = result
        raise failure
    return result


def _usual_steps(jobs: Sequence[Job]) -> int:
    """As many as show a steady state, in whole rounds of every job."""
    period = lcm(*(job.period for job in jobs))
    return -(-max((job.usual_steps for job in jobs), default=1) // period) * period


def _notes(
    system: System, algorithms: Mapping[str, str | Algorithm], rounds: Sequence[int], steps: int
) -> Iterator[str]:
    """What has no effect, or another one than it may seem."""
    left_open = {kind for block in system.blocks for kind, _, pinned in block.signatures if pinned is None}
    for kind in algorithms:
        if kind not in left_open:
            yield f"algorithms.{kind}: no effect: no op leaves it open"
    crowded = int((np.bincount(system.device) > 1).sum())
    if crowded:
        yield f"{crowded} devices run several ranks: these share memory bandwidth, but compute as if alone"
    for job, times in zip(system.jobs, rounds, strict=True):
        if times * job.period > steps:
            played = f"a round of its programs is {job.period} steps, so {times * job.period} were played for {steps}"
            yield f"{job.name}: {played}; rates of resources and coverage count all of them"


def _rows(topology: Topology, names: Sequence[str]) -> list[int]:
    """Rows of the resources that may vary; all names that are none at once as :class:`BadInput`."""
    rows, faults = [], []
    for name in names:
        try:
            rows.append(topology.resources.find(name))
        except KeyError:
            rule, nearest = f"is not a resource of {topology.name}", topology.resources.nearest(name)
            faults.append(Fault(key="varying", value=name, rule=rule, nearest=nearest))
    if faults:
        raise BadInput(faults)
    return rows


def _call_faults(jobs: Sequence[Job], steps: Any) -> Iterator[Fault]:
    """Nothing to run; such a run would succeed."""
    if not jobs:
        yield Fault(key="jobs", value=[], rule="must be a job or several")
    for job in jobs:
        if not job.num_ranks or not any(map(len, job.programs)):
            yield Fault(key=job.name, value=job.num_ranks, rule="ranks: must have ops to run")
    if not isinstance(steps, Integral) or steps < 1:
        yield Fault(key="steps", value=steps, rule="must be a whole number, at least 1", nearest=1)
