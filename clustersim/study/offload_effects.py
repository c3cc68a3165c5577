"""Settings of offloading that changed nothing, by what the job does not do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from clustersim.study.given_setting import GivenSetting
from clustersim.trace.record import LaneRecord
from clustersim.workload.offload import MlpOffload, Subgroup
from clustersim.workload.op import Compute, Copy, HostWork, Storage
from clustersim.workload.program import Program

__all__ = ["OFFLOAD_RULES", "most_cached"]

_CASTS = ("cast gradients", "cast weights", "touch memory")


def _nothing_stored(case: GivenSetting) -> str | None:
    found = any(isinstance(op, Storage) for op in case.ops)
    return None if found else "no op reads or writes a drive or the file system"


def _no_buffer(case: GivenSetting) -> str | None:
    """Buffers are held where states have a place on drives, though all of them may stay on the host."""
    held = (key for program in case.job.programs for key in program.arrays().resident)
    return None if any(key.endswith("/buffers") for key in held) else _nothing_stored(case)


def _nothing_staged(case: GivenSetting) -> str | None:
    found = any(op.name == "bring fp32 weights" for op in case.ops)
    return None if found else "no state comes to a GPU to be updated there"


def _no_cpu_update(case: GivenSetting) -> str | None:
    return None if any(op.name == "cpu adam" for op in case.ops) else "the CPU updates nothing"


def _no_cast(case: GivenSetting) -> str | None:
    found = any(isinstance(op, HostWork) and op.name in _CASTS for op in case.ops)
    return None if found else "the CPU casts nothing in passes of its own"


def _no_temporary(case: GivenSetting) -> str | None:
    found = any(op.name == "touch memory" for op in case.ops)
    return "the CPU casts nothing in passes of its own" if case.value and not found else None


def _no_turns(case: GivenSetting) -> str | None:
    """Without turns ranks copy at a time whatever is set; with one rank nobody waits."""
    if case.value:
        return "one rank has all gradients" if case.job.plan["dp"] == 1 else None
    found = any(isinstance(op, Copy) and op.turns > 1 for op in case.ops)
    return None if found else "no gradients that leave together are one rank's more than another's"


def _not_validated(case: GivenSetting) -> str | None:
    found = any(op.name == "validate" for op in case.ops)
    return "no update goes ahead of the norm, with validation behind it" if case.value and not found else None


def _clipped(case: GivenSetting) -> str | None:
    return "gradients are clipped, so no update goes ahead" if case.job.plan["clip"] else None


def _one_tier(case: GivenSetting) -> str | None:
    """Of policies with tiers; other policies' ratios are of something else."""
    return "all states are on one tier" if len(case.job.plan["offload"].get("tiers", (1, 2))) == 1 else None


def _no_gpu_update(case: GivenSetting) -> str | None:
    """One thread's updates are in turn by themselves."""
    updates = (op for op in case.ops if isinstance(op, Compute) and op.kind == "optimizer")
    return None if any(op.name != "gradient norm" for op in updates) else "the GPU updates nothing"


def _nothing_early(case: GivenSetting) -> str | None:
    """Whether the next forward pass began before the update was through."""
    if not case.value or any(map(_overlaps, case.result.record.lanes)):
        return None
    return "no forward pass began before the updates of the step before it were through"


def _overlaps(lane: LaneRecord) -> bool:
    """Whether a forward pass of the lane did; the host that issues it may always run ahead."""
    arrays, step = lane.arrays, lane.step
    streams, phases, ops = (np.tile(each, lane.rounds) for each in (arrays.stream, arrays.phase, arrays.op))
    through = np.array([op.name == "updated" for op in arrays.ops], dtype=bool)[ops]
    passes = np.array([name == "forward" for name in arrays.phases], dtype=bool)[phases]
    passes &= np.array([name != "host" for name in arrays.streams], dtype=bool)[streams] & (lane.start_ns >= 0)
    ends = dict(zip((step[through] + 1).tolist(), lane.end_ns[through].tolist(), strict=True))
    begins = zip(step[passes].tolist(), lane.start_ns[passes].tolist(), strict=True)
    return any(begin < ends.get(number, -1) for number, begin in begins)


def _cached_anyway(case: GivenSetting) -> str | None:
    offload = case.job.plan["offload"]
    if not offload.get("reverses", True):
        return "the order of updates does not turn, so nothing stays on the host"
    most = _most_of_a_tier(case)
    if most is not None and min(case.value, most) == min(MlpOffload.cache, most):
        return f"no tier has more than {most} subgroups"
    return None


def most_cached(case: GivenSetting) -> str | None:
    """A sentence where the cache has room for more subgroups than there are."""
    most = _most_of_a_tier(case)
    return f"{case.value} is as good as {most}: no tier has more subgroups" if most and case.value > most else None


def _most_of_a_tier(case: GivenSetting) -> int | None:
    """Subgroups of a rank on one tier, at most; None of a policy that is not known."""
    settings = dict(case.job.plan["offload"])
    if settings.pop("policy") != MlpOffload.name:
        return None
    policy = MlpOffload(**settings)
    return max(_of_a_tier(policy, _num_subgroups(program)) for program in case.job.programs)


def _of_a_tier(policy: MlpOffload, count: int) -> int:
    those = (Subgroup(index=index, count=count, axis="dp", chunk=0, parts=()) for index in range(count))
    return max(Counter(policy.place(subgroup).states for subgroup in those).values(), default=0)


def _num_subgroups(program: Program) -> int:
    arrays = program.arrays()
    updates = np.array([op.name == "cpu adam" for op in arrays.ops], dtype=bool)
    return int(updates[arrays.op].sum()) // arrays.period


OFFLOAD_RULES: Mapping[str, Callable[[GivenSetting], str | None]] = {
    f"plan.offload.{field}": rule
    for rule, fields in (
        (_nothing_stored, ("read_ahead", "write_behind", "lock")),
        (_no_buffer, ("buffers", "gradient_buffers")),
        (_nothing_staged, ("staging", "duplex")),
        (_no_cpu_update, ("adam", "update_threads")),
        (_no_cast, ("cast_threads",)),
        (_no_temporary, ("temporaries",)),
        (_no_turns, ("round_robin",)),
        (_not_validated, ("validates", "rolls_back")),
        (_clipped, ("asynchronous",)),
        (_no_gpu_update, ("in_turn",)),
        (_nothing_early, ("overlaps_forward",)),
        (_cached_anyway, ("cache",)),
        (_one_tier, ("ratio", "shares")),
    )
    for field in fields
}
"""By key: the reason why a value did nothing in a job, or None where it may have acted."""
