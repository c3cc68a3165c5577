"""One point of a study: settings checked as a whole, made into a cluster and a job, and run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from clustersim.engine.deadlock import Deadlock
from clustersim.engine.perturb import Perturbation, perturbed
from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput, Fault
from clustersim.hardware.kernel import CostModel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.graph import load_graph
from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS, workload_of
from clustersim.library.model import load_model
from clustersim.library.section import find_builder
from clustersim.library.topologies import load_topology
from clustersim.study.by_profile import asked_for, by_profile
from clustersim.study.checkpoint_effects import mostly_pieces
from clustersim.study.effects import without_effect
from clustersim.study.graph_job import find_graph_faults, graph_job
from clustersim.study.own_kernels import own_kernels
from clustersim.study.policies import checkpoint_strategy, offload_policy, take_table
from clustersim.study.provenance import provenance
from clustersim.study.run_length import too_long, too_many_steps, too_slow
from clustersim.study.runnable import absent_drives, unrunnable
from clustersim.study.settling import unsettled_saves
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.case import Case
from clustersim.workload.graph import Graph
from clustersim.workload.job import Job
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults
from clustersim.workload.schedule import SCHEDULES
from clustersim.workload.training_step import training_step

__all__ = ["Point", "prepare", "run_point"]

_FABRIC = tuple(key for key in KEYS if key.startswith(("fabric", "node.", "host.", "storage.", "communication.")))
_TOPOLOGY = ("nodes", *_FABRIC, "nics_per_node")
_BATCH = ("global_batch", "micro_batch", "seq_len")
_CALLABLES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "plan.schedule": SCHEDULES,
    "plan.sharding": {},
    "graph.placement": {},
}
"""Settings that may name a callable of the user's own, each with the short names."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Point:
    """What a simulation is called with, nothing left open.

    Parameters
    ----------
    setup : JobSetup
        the settings it came from
    topology : Topology
    job : Job
    arguments : Mapping[str, Any]
        keyword arguments of :func:`clustersim.engine.simulate.simulate`
    notes : tuple[str, ...]
        what the readers of the files had to say
    case : Case, optional
        model, plan and batch of a job that trains a model
    """

    setup: JobSetup
    topology: Topology
    job: Job
    arguments: Mapping[str, Any]
    notes: tuple[str, ...]
    case: Case | None = None


def run_point(setup: JobSetup | Point, *, fold: bool = True, progress: Callable[[int], None] | None = None) -> Result:
    """Prepare and simulate.

    Parameters
    ----------
    setup : JobSetup or Point
        settings, or a point that is prepared already
    fold : bool
        see :func:`clustersim.engine.simulate.simulate`
    progress : callable, optional
        called now and then with the simulated time [ns]

    Returns
    -------
    Result
        whose ``inputs`` hold the settings, the hash of every file read and one over all, and whose warnings name
        settings without effect

    Raises
    ------
    BadInput
        with every fault of the settings
    Deadlock
        as the engine does, its ``result`` described in the same way
    """
    point = setup if isinstance(setup, Point) else prepare(setup)
    try:
        return _described(point, simulate(point.topology, point.job, fold=fold, progress=progress, **point.arguments))
    except Deadlock as deadlock:
        if deadlock.result is not None:
            deadlock.result = _described(point, deadlock.result)
        raise


def prepare(setup: JobSetup, faults: Sequence[Fault] = ()) -> Point:
    """Check settings against each other, then build the cluster and the job.

    Parameters
    ----------
    setup : JobSetup
    faults : Sequence[Fault]
        of settings that were refused one by one already; rules over these are left out

    Raises
    ------
    BadInput
        with ``faults`` and all others that can be told; nothing is built then
    """
    refused = {fault.key: fault.value for fault in faults}
    trained = setup.workload if "graph" not in refused else "graph"
    asked = [key for key, about in KEYS.items() if about.required and workload_of(key) in ("", trained)]
    missing = [key for key in asked if setup.value(key) is None and key not in refused]
    found = [Fault(key=key, value=None, rule="must be given", nearest=KEYS[key].usual) for key in missing]
    found += _of_other_jobs(setup, trained)
    values = {key: refused.get(key, setup.value(key)) for key in KEYS}
    notes: list[str] = []
    model: Model | None = None
    graph: Graph | None = None
    topology: Topology | None = None
    if trained == "graph" and setup.value("graph") is not None:
        with _collect(found):
            graph = load_graph(setup.value("graph"))
    elif trained == "model" and setup.value("model") is not None:
        with _collect(found), _noted(notes):
            model = load_model(setup.value("model"))
    if setup.value("topology") is not None:
        with _collect(found):
            given = {key: setup.values[key] for key in _TOPOLOGY if key in setup.values}
            topology = load_topology(setup.value("topology"), **given)
    # An illegal number stands for what is not known: it leaves out the rules that need it.
    num_devices = topology.num_devices if topology and "nodes" not in refused else 0
    taken: dict[str, Any] = {}
    if setup.value("profile") is not None:
        with _collect(found):
            taken = by_profile(setup, refused, topology, num_devices)
    values |= taken
    for key, known in _CALLABLES.items():
        name = values[key]
        if isinstance(name, str) and ":" in name:
            values[key] = None
            if key in refused:
                continue
            with _collect(found):
                values[key] = find_builder(key, name, known)
    settings_of_offload = take_table(values, "plan.offload")
    with _collect(found):
        values["plan.offload"] = offload_policy(settings_of_offload, topology)
    settings_of_saves = take_table(values, "plan.checkpoint")
    with _collect(found):
        values["plan.checkpoint"] = checkpoint_strategy(settings_of_saves)
    case = None if model is None else _case(model, values, num_devices)
    if case is not None:
        told = {*refused, *missing, *(() if num_devices else ("num_devices",))}
        set_there = f" (profile {setup.value('profile')} sets it)"
        found += [
            replace(fault, rule=f"{fault.rule}{set_there}") if fault.key in taken else _as_nodes(fault, topology)
            for fault in find_faults(case)
            if fault.key not in told
        ]
    settings = {key: setup.value(key) for key in KEYS if workload_of(key) == "graph"}
    settings |= {"graph.placement": values["graph.placement"]}
    if graph is not None and num_devices and topology is not None:
        found += [fault for fault in find_graph_faults(graph, settings, topology) if fault.key not in refused]
        found += too_many_steps(graph, setup.value("steps"))
    own: dict[str, CostModel] = {}
    if setup.value("kernel_table") is not None:
        with _collect(found):
            own["cost"] = own_kernels(setup.value("kernel_table"), topology)
    perturb = _given(setup, "perturb")
    if topology is not None and "nodes" not in refused:
        found += _perturb_faults(perturb, topology)
    if case is not None and not found and not faults:
        found += too_long(case, setup.values.get("steps"))
    job: Job | None = None
    if topology is not None and not found and not faults:
        with _collect(found):
            if graph is not None:
                job = graph_job(graph, settings, topology)
            elif case is not None:
                job = _training_job(case, setup.value("dtype"))
        if job is not None and case is not None:
            found += too_slow(job, topology, setup.values.get("steps"))
            found += absent_drives(case, job, topology)
            found += unrunnable(job, topology, own.get("cost", kernel_cost), dtype=setup.value("dtype"))
    if topology is None or job is None or found:
        raise BadInput([*faults, *(f if f.file else replace(f, file=setup.file(f.key)) for f in found)])
    return Point(
        setup=setup,
        topology=topology,
        job=replace(job, name=setup.name or job.name, notes=tuple(asked_for(job.notes, taken))),
        arguments={
            "steps": setup.values.get("steps"),
            "seed": setup.value("seed"),
            "perturb": perturb,
            "overlap": _given(setup, "overlap"),
            "algorithms": _given(setup, "algorithms"),
            "limits": _given(setup, "limits") or None,
            **own,
        },
        notes=tuple(notes),
        case=case,
    )


def _of_other_jobs(setup: JobSetup, trained: str) -> Iterator[Fault]:
    """Settings that were given and are for jobs that train something else."""
    for key, value in setup.values.items():
        if workload_of(key) not in ("", trained):
            rule = f"is for jobs that train a {workload_of(key)}; this one trains a {trained}"
            yield Fault(key=key, value=value, rule=rule)


def _training_job(case: Case, dtype: str) -> Job:
    return training_step(
        case.model,
        case.plan,
        global_batch=case.global_batch,
        micro_batch=case.micro_batch,
        seq_len=case.seq_len,
        dtype=dtype,
        num_devices=case.num_devices,
        seq_lens=case.seq_lens,
        seq_seed=case.seq_seed,
    )


def _given(setup: JobSetup, table: str) -> dict[str, Any]:
    """The settings of one table that were given, by their names in it."""
    return {key.removeprefix(f"{table}."): setup.values[key] for key in setup.values if key.startswith(f"{table}.")}


def _case(model: Model, values: Mapping[str, Any], num_devices: int) -> Case:
    """The combination to check."""
    plan = {key.removeprefix("plan."): value for key, value in values.items() if key.startswith("plan.")}
    batch: dict[str, Any] = {key: values[key] or 0 for key in _BATCH}
    batch |= {key: values[key] for key in ("seq_lens", "seq_seed")}
    return Case(model=model, plan=ParallelPlan(**plan), dtype=values["dtype"], num_devices=num_devices, **batch)


def _described(point: Point, result: Result) -> Result:
    """The result with where it came from and what had no effect."""
    in_vain = tuple(without_effect(point.setup, point.topology, point.job, result))
    again = {note.partition(":")[0] for note in in_vain if ": no effect" in note}  # of which the fabric speaks too
    notes = (
        *point.notes,
        *(note for note in result.warnings if not (": no effect" in note and note.partition(":")[0] in again)),
        *in_vain,
        *unsettled_saves(point.job, result),
        *mostly_pieces(point.job, result),
    )
    inputs = provenance(point.setup, point.topology, point.job, steps=result.inputs["steps"])
    return replace(result, warnings=tuple(dict.fromkeys(notes)), inputs=inputs)


@contextmanager
def _collect(faults: list[Fault]) -> Iterator[None]:
    """Note the faults of an input that is bad and go on, to find the others too."""
    try:
        yield
    except BadInput as error:
        faults += error.faults


@contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    """Note what a reader warns of, for the result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [str(warning.message) for warning in caught]


def _as_nodes(fault: Fault, topology: Topology | None) -> Fault:
    """A fault of the number of devices as one of the number of nodes, which is what users set."""
    if fault.key != "num_devices" or topology is None:
        return fault
    each = topology.num_devices // topology.num_nodes
    nearest = fault.nearest
    if isinstance(nearest, int) and nearest % each == 0:
        nearest = nearest // each
    elif nearest is not None:
        nearest = f"{nearest} GPUs"
    rule = f"of {each} GPUs: {topology.num_devices} {fault.rule}"
    return Fault(key="nodes", value=topology.num_nodes, rule=rule, nearest=nearest)


def _perturb_faults(perturb: Mapping[str, Any], topology: Topology) -> list[Fault]:
    """Links and ranks that there are not."""
    found: list[Fault] = []
    with _collect(found):
        perturbed(topology, Perturbation.parse(perturb))
    last = topology.num_devices - 1
    for rank in perturb.get("slow_ranks", ()):
        if rank > last:
            rule = f"must be a rank from 0 to {last}"
            found.append(Fault(key="perturb.slow_ranks", value=rank, rule=rule, nearest=last))
    return found
