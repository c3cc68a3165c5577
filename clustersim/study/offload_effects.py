"""Settings of offloading that changed nothing, by what the job does not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from clustersim.workload.job import Job
from clustersim.workload.op import HostWork, Op, Storage

__all__ = ["OFFLOAD_RULES"]

_CASTS = ("cast gradients", "cast weights", "touch memory")


def _ops(job: Job) -> Iterator[Op]:
    return (op for program in job.programs for op in program.arrays().ops)


def _nothing_stored(job: Job, _: Any) -> str | None:
    found = any(isinstance(op, Storage) for op in _ops(job))
    return None if found else "no op reads or writes a drive or the file system"


def _nothing_staged(job: Job, _: Any) -> str | None:
    found = any(op.name == "bring fp32 weights" for op in _ops(job))
    return None if found else "no state comes to a GPU to be updated there"


def _no_cpu_update(job: Job, _: Any) -> str | None:
    return None if any(op.name == "cpu adam" for op in _ops(job)) else "the CPU updates nothing"


def _no_cast(job: Job, _: Any) -> str | None:
    found = any(isinstance(op, HostWork) and op.name in _CASTS for op in _ops(job))
    return None if found else "the CPU casts nothing in passes of its own"


def _no_temporary(job: Job, value: Any) -> str | None:
    found = any(op.name == "touch memory" for op in _ops(job))
    return "the CPU casts nothing in passes of its own" if value and not found else None


def _not_validated(job: Job, value: Any) -> str | None:
    found = any(op.name == "validate" for op in _ops(job))
    return "no update goes ahead of the norm, with validation behind it" if value and not found else None


def _clipped(job: Job, _: Any) -> str | None:
    return "gradients are clipped, so no update goes ahead" if job.plan["clip"] else None


def _one_tier(job: Job, _: Any) -> str | None:
    """Of policies with tiers; other policies' ratios are of something else."""
    return "all states are on one tier" if len(job.plan["offload"].get("tiers", (1, 2))) == 1 else None


OFFLOAD_RULES: Mapping[str, Callable[[Job, Any], str | None]] = {
    f"plan.offload.{field}": rule
    for rule, fields in (
        (_nothing_stored, ("buffers", "gradient_buffers", "read_ahead", "write_behind", "lock")),
        (_nothing_staged, ("staging", "duplex")),
        (_no_cpu_update, ("adam", "update_threads")),
        (_no_cast, ("cast_threads",)),
        (_no_temporary, ("temporaries",)),
        (_not_validated, ("validates", "rolls_back")),
        (_clipped, ("asynchronous",)),
        (_one_tier, ("ratio", "shares")),
    )
    for field in fields
}
"""By key: the reason why a value did nothing in a job, or None where it may have acted."""
