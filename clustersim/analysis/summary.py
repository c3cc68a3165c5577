"""The numbers of a run that people ask for first, computed from its record without a DataFrame."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.breakdown import axes_of_lanes, breakdown_ns, pools_of_lanes
from clustersim.analysis.fits import worst_lack
from clustersim.analysis.host_bounds import host_bounds_s
from clustersim.analysis.partition import class_names
from clustersim.analysis.peak import peak
from clustersim.analysis.phases import PHASES, overlapped, phases_ns
from clustersim.analysis.report import report
from clustersim.analysis.steady import steady_steps
from clustersim.analysis.step_residual import load_step_residual
from clustersim.analysis.stores import fullest, store_peaks
from clustersim.analysis.uncertainty import step_spread
from clustersim.topology.topology import Topology
from clustersim.trace.coverage import Coverage
from clustersim.trace.record import LaneRecord, Record
from clustersim.trace.schema import SCHEMA_VERSION
from clustersim.trace.steps import step_edges
from clustersim.workload.job import TIERS, Job
from clustersim.workload.op import Compute

__all__ = ["LEAST_SHARE", "STORES", "Run", "Summary", "summary"]

LEAST_SHARE = 1e-3
"""Of op time, below which a kernel or a collective is not told to be worth measuring."""

STORES = ("gpu", "host", "nvme", "file_system")
"""What is filled: a GPU, the host memory and the drives of a node, the file system of the site."""


class Run(Protocol):
    """What a summary reads of a result."""

    @property
    def record(self) -> Record:
        """What the engine left behind."""

    @property
    def topology(self) -> Topology:
        """The cluster."""

    @property
    def fold(self) -> str:
        """``exact`` or ``off``."""

    @property
    def wall_s(self) -> float:
        """What the simulation took [s]."""

    @property
    def warnings(self) -> Sequence[str]:
        """What a user should know."""


class Summary(dict[str, Any]):
    """The fields of ``run --json`` as a dict that prints as text, readable at 80 columns."""

    def __init__(self, fields: Mapping[str, Any], topology: Topology) -> None:
        super().__init__(fields)
        self._topology = topology

    def __str__(self) -> str:
        return report(self, self._topology)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)  # to another process goes what is said, not the cluster


def summary(run: Run) -> Summary:
    """The fields of ``run --json``; :func:`clustersim.analysis.definitions.definitions` says what each means.

    Parameters
    ----------
    run : Result

    Returns
    -------
    Summary
        a dict of plain numbers, texts, lists and dicts; what a run does not tell is None, never NaN
    """
    record = run.record
    stores = fullest(store_peaks(record, run.topology))
    lack = worst_lack(stores.values())
    jobs = [_of_job(run, k) for k in range(len(record.jobs))]
    notes = [note for job in jobs for note in job.pop("notes")]
    answer: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "status": "out_of_memory" if record.status == "ok" and lack else record.status,
        "message": record.message or None,
        "fits": False if lack else (True if record.status == "ok" else None),
        **jobs[0],
        "peak_store_bytes": {store: stores[store].nbytes if store in stores else 0 for store in STORES},
        "out_of_memory": asdict(lack) if lack else None,
        "fold": run.fold,
        "num_events": record.num_events,
        "wall_s": run.wall_s,
        "warnings": list(dict.fromkeys([*run.warnings, *notes])),
        "coverage": record.coverage,
        "coverage_missing": _missing(record),
    }
    if len(jobs) > 1:
        answer["jobs"] = jobs
    return Summary(_plain(answer), run.topology)


def _of_job(run: Run, number: int) -> dict[str, Any]:
    """What a summary says of one job, and under ``notes`` what could not be said."""
    job = run.record.jobs[number]
    lanes = [lane for lane in run.record.lanes if lane.job == number]
    edges = step_edges(lanes)
    duration_ns = np.diff(edges)
    steady = steady_steps(duration_ns, max((lane.arrays.period for lane in lanes), default=1))
    step_s = float(duration_ns[steady].mean()) / 1e9 if len(steady) else 0.0
    breakdown, pool_wait = _breakdown_s(lanes, edges, steady)
    ledger = job.ledger
    num_gpus = job.num_ranks if job.devices is None else len(np.unique(job.devices))
    peak_flop_per_s, notes = _peak_flop_per_s(job, run.topology)
    offloads = bool(job.plan.get("offload"))
    executed = sum(lane.multiplicity * _executed_flops(lane) for lane in lanes)

    residual = load_step_residual()
    spread = step_spread([work for work in run.record.timed if work.job == number], breakdown)

    def per_second(amount: float, over: float = 1.0) -> float | None:
        return amount / step_s / over if step_s and amount and over else None

    return {
        "job": job.name,
        "step_time_s": step_s if len(steady) else None,
        "step_time_interval_s": list(residual.interval(step_s, spread)) if len(steady) else None,
        "step_times_s": (duration_ns / 1e9).tolist(),
        "tokens_per_s": per_second(ledger.tokens),
        "tokens_per_s_per_gpu": per_second(ledger.tokens, num_gpus),
        "samples_per_s": per_second(ledger.samples),
        "samples_per_s_per_gpu": per_second(ledger.samples, num_gpus),
        "model_flops_per_gpu_per_s": per_second(ledger.model_flops, num_gpus),
        "mfu": per_second(ledger.model_flops, peak_flop_per_s),
        "mfu_full_attention": per_second(ledger.model_flops_full_attention, peak_flop_per_s),
        "hfu": per_second(executed, peak_flop_per_s),
        "bubble_fraction": breakdown["bubble"] / step_s if step_s else None,
        "exposed_comm_fraction": sum(breakdown["exposed_comm"].values()) / step_s if step_s else None,
        "breakdown_s": breakdown,
        "pool_wait_s": pool_wait,
        "phases_s": _phases_s(lanes, edges, steady) if offloads else None,
        "host_bounds_s": host_bounds_s(lanes, run.record.bounds, steady) if offloads else None,
        "peak_memory_bytes": _peak_bytes(lanes),
        "plan": job.plan,
        "num_ranks": job.num_ranks,
        "num_classes": len(lanes),
        "num_ops": sum(lane.num_ops for lane in lanes),
        "notes": notes,
    }


def _missing(record: Record) -> dict[str, list[dict[str, Any]]]:
    """What is worth measuring, without what hardly counts."""
    missing = Coverage(record.coverage, record.timed).missing
    return {name: [row for row in rows if row["share"] >= LEAST_SHARE] for name, rows in missing.items()}


def _breakdown_s(
    lanes: Sequence[LaneRecord], edges: NDArray[np.int64], steps: NDArray[np.int64]
) -> tuple[dict[str, Any], dict[str, float | None]]:
    """Mean over ranks and over ``steps`` of the time in each class, and of what is waited for by pool [s]."""
    axes, pools = axes_of_lanes(lanes), pools_of_lanes(lanes)
    names = class_names(axes, pools)
    mean: list[float | None] = [None] * len(names)
    if len(steps):
        num_ranks = sum(lane.multiplicity for lane in lanes)
        total = sum(lane.multiplicity * breakdown_ns(lane, edges, axes, pools)[steps].sum(axis=0) for lane in lanes)
        mean = [int(ns) / (num_ranks * len(steps)) / 1e9 for ns in np.asarray(total)]
    seconds = dict(zip(names, mean, strict=True))
    by_pool = {pool: seconds[f"wait.{pool}"] for pool in pools}
    waited = [value for value in (seconds["wait"], *by_pool.values()) if value is not None]
    return {
        "compute": seconds["compute"],
        "optimizer": seconds["optimizer"],
        "exposed_comm": {axis: seconds[f"exposed_comm.{axis}"] for axis in axes},
        **{name: seconds[name] for name in ("exposed_copy", "host", "bubble")},
        "wait": sum(waited) if waited else None,
    }, by_pool


def _phases_s(
    lanes: Sequence[LaneRecord], edges: NDArray[np.int64], steps: NDArray[np.int64]
) -> dict[str, float] | None:
    """Mean over ranks and over ``steps`` of what a step is to those who offload [s], and the hidden shares."""
    if not len(steps):
        return None
    num_ranks = sum(lane.multiplicity for lane in lanes)
    spent = sum(lane.multiplicity * phases_ns(lane, edges)[steps].sum(axis=0) for lane in lanes)
    total = np.asarray(spent).reshape(1, -1)
    swap_in, swap_out = overlapped(total)[0].tolist()
    seconds = (total[0, : len(PHASES)] / (num_ranks * len(steps)) / 1e9).tolist()
    return {**dict(zip(PHASES, seconds, strict=True)), "swap_in_overlapped": swap_in, "swap_out_overlapped": swap_out}


def _peak_flop_per_s(job: Job, topology: Topology) -> tuple[float, list[str]]:
    """Dense peak of all the job's GPUs together [FLOP/s]; 0 and a note when one has none in the job's dtype."""
    devices = np.arange(job.num_ranks) if job.devices is None else np.unique(job.devices)
    total = 0.0
    for card, count in enumerate(np.bincount(topology.gpu_of[devices], minlength=len(topology.gpus))):
        if not count:
            continue
        try:
            total += int(count) * topology.gpus[card].flop_per_s(job.ledger.dtype)
        except KeyError:
            note = f"mfu: {topology.gpus[card].name} has no dense peak for {job.ledger.dtype}, so no MFU or HFU"
            return 0.0, [note]
    return total, []


def _executed_flops(lane: LaneRecord) -> float:
    """FLOP of the kernels of one step, a mean over those of the program, recompute included; of passes over memory only
    scans count any."""
    times = np.bincount(lane.arrays.op, minlength=len(lane.arrays.ops)) / lane.arrays.period
    return sum(
        float(n) * sum(k.flops * k.count for k in op.kernels)
        for op, n in zip(lane.arrays.ops, times, strict=True)
        if isinstance(op, Compute)
    )


def _peak_bytes(lanes: Sequence[LaneRecord]) -> dict[str, int]:
    """Most bytes that one rank holds, by tier."""
    most = dict.fromkeys(TIERS, 0)
    for lane in lanes:
        for tier, top in peak(lane).items():
            most[tier] = max(most.get(tier, 0), top.nbytes)
    return most


def _plain(value: Any) -> Any:
    """``value`` in the types that JSON has; numbers that are not finite become None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return getattr(value, "__name__", str(value))
