"""Settings that changed nothing, told by cheap rules: one a row, each held to a run with and without the setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS
from clustersim.study.captured_effects import nothing_captured, partly_captured
from clustersim.study.checkpoint_effects import chunks_alike, largest_chunk
from clustersim.study.fabric_effects import apart, failed, links, same_routes, sums_in_switches
from clustersim.study.given_setting import GivenSetting
from clustersim.study.host_effects import HOST_RULES
from clustersim.study.offload_effects import OFFLOAD_RULES, most_cached
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.job import Job
from clustersim.workload.op import Collective, Compute, Storage

__all__ = ["without_effect"]


def without_effect(setup: JobSetup, topology: Topology, job: Job, result: Result) -> Iterator[str]:
    """A sentence for each setting that was given, is not the default, and changed no op of the run.

    Parameters
    ----------
    setup : JobSetup
    topology : Topology
        what it became, without perturbations
    job : Job
        what it became
    result : Result
        of the run

    Notes
    -----
    Rules know what a setting is read for, not whether what was read did bind: a wider link that nothing waited for is
    not told. What the plan and the fabric say of their own settings is among the job's and the topology's notes.
    """
    for key, value in setup.values.items():
        yield from _twice(key, value)
        if key in _RULES and value != KEYS[key].default:
            case = GivenSetting(key=key, value=value, setup=setup, topology=topology, job=job, result=result)
            if reason := _RULES[key](case):
                yield f"{key}: no effect: {reason}"
            elif key in _MOST and (most := _MOST[key](case)):
                yield f"{key}: {most}"


def _twice(key: str, value: object) -> Iterator[str]:
    """Names that a list has more than once."""
    names = [name for name in value if isinstance(name, str)] if isinstance(value, list | tuple) else []
    for name, count in Counter(names).items():
        if count > 1:
            yield f"{key}: {name} is there {count} times: no effect beyond the first"


def _nothing_random(case: GivenSetting) -> str | None:
    drawn = case.result.inputs["perturb"]["jitter"]
    return None if drawn else "nothing in this run is drawn at random: perturb.jitter is 0"


def _no_kernel_measured(case: GivenSetting) -> str | None:
    """Kernels of ops that took no time are none."""
    coverage = case.result.record.coverage
    found = coverage.get("measured", 0) + coverage.get("interpolated", 0)
    return None if found else "no kernel of this run has a shape that the table holds or lies between"


def _members(case: GivenSetting) -> str | None:
    return None if any(family.members.shape[1] > 1 for family in case.job.families) else "no group has two members"


def _several_replicas(case: GivenSetting) -> str | None:
    """Without replicas ranks of tp may hold the same experts, and gradients that leave the GPU go in buckets."""
    plan, names = case.job.plan, {family.name for family in case.job.families}
    alone = plan["dp"] * plan["cp"] == 1 and "edp" not in names
    return "dp is 1: there is nothing to reduce" if alone and plan.get("offload") is None else None


def _nothing_to_place(case: GivenSetting) -> str | None:
    return "a worker has one GPU" if case.job.plan["mp"] == 1 else None


def _several_workers(case: GivenSetting) -> str | None:
    return "one worker has nothing to reduce" if case.job.plan["dp"] == 1 else None


def _all_alike(case: GivenSetting) -> str | None:
    alike = case.job.plan["mp"] == 1 and case.job.num_ranks == case.topology.num_devices
    return "every GPU is a worker" if alike else None


def _several_axes(case: GivenSetting) -> str | None:
    degrees = [case.job.plan[axis] for axis in ("tp", "cp", "dp", "pp")]
    return "only one axis has more than one rank" if sum(degree > 1 for degree in degrees) < 2 else None


def _all_aligned(case: GivenSetting) -> str | None:
    """Products that were moved to vector units are fp32 now; the head's never are."""
    if case.job.ledger.dtype == "fp32":
        return "products in fp32 run on vector units anyway"
    kernels = (kernel for op in case.ops if isinstance(op, Compute) for kernel in op.kernels)
    moved = any(kernel.dtype == "fp32" and not kernel.aligned for kernel in kernels)
    return None if moved else "sides of all products of layers are multiples of 16 bytes"


def _no_drive(case: GivenSetting) -> str | None:
    return None if _stored(case, "nvme") else "no op reads or writes a drive"


def _no_file_system(case: GivenSetting) -> str | None:
    return None if _stored(case, "fs") else "no op reads or writes the shared file system"


def _stored(case: GivenSetting, where: str) -> bool:
    """Whether the job has reads or writes of the drives or of the file system."""
    return any(isinstance(op, Storage) and op.kind.startswith(where) for op in case.ops)


def _slow_ranks(case: GivenSetting) -> str | None:
    return "every factor is 1" if all(factor == 1 for factor in case.value.values()) else None


def _no_kernel_beside(case: GivenSetting) -> str | None:
    return None if _beside_a_collective(case.result, Compute) else "no kernel ran beside a collective"


def _nothing_beside(case: GivenSetting) -> str | None:
    """More bytes may also slow a collective that is alone; fewer only help others, links being what it waits for."""
    acts = case.value > 1 or _beside_a_collective(case.result, object)
    return None if acts else "nothing ran beside a collective"


def _beside_a_collective(result: Result, what: type) -> bool:
    """Whether an op of a class ran on a rank while another op, a collective, did."""
    for lane in result.record.lanes:
        ran = (lane.start_ns >= 0) & (lane.end_ns > lane.start_ns)
        joint = ran & np.array([isinstance(op, Collective) for op in lane.arrays.ops], dtype=bool)[lane.ops]
        asked = ran & np.array([isinstance(op, what) for op in lane.arrays.ops], dtype=bool)[lane.ops]
        begun = np.searchsorted(np.sort(lane.start_ns[joint]), lane.end_ns[asked], side="left")
        ended = np.searchsorted(np.sort(lane.end_ns[joint]), lane.start_ns[asked], side="right")
        if (begun - ended > joint[asked]).any():
            return True
    return False


_RULES: dict[str, Callable[[GivenSetting], str | None]] = {
    "seed": _nothing_random,
    "fabric": same_routes,
    "fabric.oversubscription": same_routes,
    "fabric.levels": same_routes,
    "fabric.radix": same_routes,
    "fabric.ecmp": same_routes,
    "fabric.ecmp_seed": same_routes,
    "fabric.sharp": sums_in_switches,
    "kernel_table": _no_kernel_measured,
    "communication.node": _members,
    "communication.network": apart,
    "nics_per_node": same_routes,
    "graph.placement": _nothing_to_place,
    "graph.gpu_order": _all_alike,
    "graph.bucket_bytes": _several_workers,
    "plan.overlap_dp": _several_replicas,
    "plan.axis_order": _several_axes,
    "plan.unaligned": _all_aligned,
    "plan.cuda_graphs": nothing_captured,
    "overlap.sm": _no_kernel_beside,
    "overlap.hbm": _nothing_beside,
    **dict.fromkeys(("host.drive", "host.num_drives", "host.drive_uplink"), _no_drive),
    **dict.fromkeys(("host.request_bytes", "host.queue_depth"), _no_drive),
    **{key: _no_file_system for key in KEYS if key.startswith("storage.") and KEYS[key].unit},
    **HOST_RULES,
    **OFFLOAD_RULES,
    "plan.checkpoint.chunk_bytes": chunks_alike,
    "perturb.slow_ranks": _slow_ranks,
    "perturb.slow_links": links,
    "perturb.failed_links": failed,
}

_MOST: dict[str, Callable[[GivenSetting], str | None]] = {
    "plan.cuda_graphs": partly_captured,
    "plan.offload.cache": most_cached,
    "plan.checkpoint.chunk_bytes": largest_chunk,
}
"""Of settings that act, whether less of the value would have done the same."""
