"""One point of a study: settings checked as a whole, made into a cluster and a job, and run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clustersim.engine.deadlock import Deadlock
from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput, Fault, collect
from clustersim.hardware.kernel import CostModel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS, workload_of
from clustersim.study.by_profile import asked_for
from clustersim.study.checkpoint_effects import mostly_pieces
from clustersim.study.effects import without_effect
from clustersim.study.graph_job import find_graph_faults, graph_job
from clustersim.study.idle_settings import idle_settings
from clustersim.study.inputs import load_inputs
from clustersim.study.named_values import named_values
from clustersim.study.own_kernels import own_kernels
from clustersim.study.provenance import provenance
from clustersim.study.run_length import too_long, too_many_steps, too_slow
from clustersim.study.runnable import absent_drives, unrunnable
from clustersim.study.settling import unsettled_saves
from clustersim.study.setup_faults import absent, as_nodes, of_other_jobs, perturb_faults
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.case import Case
from clustersim.workload.job import Job
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults
from clustersim.workload.training_step import training_step

__all__ = ["Point", "prepare", "run_point"]

_BATCH = ("global_batch", "micro_batch", "seq_len")


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


def prepare(setup: JobSetup, faults: Sequence[Fault] = (), *, cluster: Topology | None = None) -> Point:
    """Check settings against each other, then build the cluster and the job.

    Parameters
    ----------
    setup : JobSetup
    faults : Sequence[Fault]
        of settings that were refused one by one already; rules over these are left out
    cluster : Topology, optional
        that these settings are known to make; read from its card where it is left out

    Raises
    ------
    BadInput
        with ``faults`` and all others that can be told; nothing is built then
    """
    refused = {fault.key: fault.value for fault in faults}
    trained = setup.workload if "graph" not in refused else "graph"
    missing = absent(setup, refused, trained)
    loaded = load_inputs(setup, refused, trained, cluster)
    graph, topology, num_devices = loaded.graph, loaded.topology, loaded.num_devices
    given = {key: refused.get(key, setup.value(key)) for key in KEYS}
    values, unnamed = named_values({**given, **loaded.profile}, refused, topology)
    found = [*missing, *of_other_jobs(setup, trained), *loaded.faults, *unnamed]
    case = None if loaded.model is None else _case(loaded.model, values, num_devices)
    if case is not None:
        told = {*refused, *(fault.key for fault in missing), *(() if num_devices else ("num_devices",))}
        set_there = f" (profile {setup.value('profile')} sets it)"
        found += [
            replace(fault, rule=f"{fault.rule}{set_there}")
            if fault.key in loaded.profile
            else as_nodes(fault, topology, case)
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
        with collect(found):
            own["cost"] = own_kernels(setup.value("kernel_table"), topology)
    perturb = _given(setup, "perturb")
    if topology is not None and "nodes" not in refused:
        found += perturb_faults(perturb, topology)
    if case is not None and not found and not faults:
        found += too_long(case, setup.values.get("steps"))
    job: Job | None = None
    if topology is not None and not found and not faults:
        with collect(found):
            if graph is not None:
                job = graph_job(graph, settings, topology)
            elif case is not None:
                job = _training_job(case, setup.value("dtype"))
        if job is not None and case is not None:
            found += too_slow(job, topology, setup.values.get("steps"))
            found += absent_drives(case, job, topology)
            cost = own.get("cost", kernel_cost)
            found += unrunnable(job, topology, cost, dtype=setup.value("dtype"), module_dtypes=case.plan.module_dtypes)
    if topology is None or job is None or found:
        raise BadInput([*faults, *(f if f.file else replace(f, file=setup.file(f.key)) for f in found)])
    return Point(
        setup=setup,
        topology=topology,
        job=replace(job, name=setup.name or job.name, notes=tuple(asked_for(job.notes, loaded.profile))),
        arguments={
            "steps": setup.values.get("steps"),
            "seed": setup.value("seed"),
            "perturb": perturb,
            "overlap": _given(setup, "overlap"),
            "algorithms": _given(setup, "algorithms"),
            "limits": _given(setup, "limits") or None,
            **own,
        },
        notes=loaded.notes,
        case=case,
    )


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
    heads = (note.partition(": ")[0] for note in (*result.warnings, *in_vain))
    told = {key for head in heads for key in head.split(", ")}
    notes = (
        *point.notes,
        *(note for note in result.warnings if not (": no effect" in note and note.partition(":")[0] in again)),
        *in_vain,
        *idle_settings(point.setup, point.job, told, lambda setup: prepare(setup, cluster=point.topology).job),
        *unsettled_saves(point.job, result),
        *mostly_pieces(point.job, result),
    )
    inputs = provenance(point.setup, point.topology, point.job, steps=result.inputs["steps"])
    return replace(result, warnings=tuple(dict.fromkeys(notes)), inputs=inputs)
