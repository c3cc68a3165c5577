"""How a row's job is spread over GPUs, and its batch: from its columns, else from its profile."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from clustersim.readers.step_rows import StepRow
from clustersim.study.profile import Profile
from clustersim.study.steps.number_format import dtype_of
from clustersim.study.steps.offload import offload_of
from clustersim.study.steps.recomputed import recompute_of
from clustersim.study.steps.refusal import RefusedError
from clustersim.study.steps.schedules import schedule_of
from clustersim.study.steps.sharding import sharding_of
from clustersim.workload.plan import ParallelPlan

__all__ = ["LAYER_METRICS", "LAYER_TIME", "MEMORY_METRICS", "ONE_SEQUENCE", "Layout", "layout_of"]

_CP_EP = re.compile(r"\bCP (\d+), EP (\d+)\b")
"""How notes of tables without such columns give cp and ep."""

_ROUNDED = 0.05
"""Part of a batch by which it may miss whole micro-batches on every replica: published ones are round numbers."""

ONE_SEQUENCE = "batch: micro-batch 1"
"""What is assumed where none is published, and the batch is more than one sequence a replica."""

LAYER_TIME = "layer_forward_backward_time"
"""Time of one layer, forward and backward, without embedding, head, optimizer and pipeline."""

LAYER_METRICS = ("activations", "parameters+optimizer", "activation memory relative to no recompute")
"""Memory of the layers of the first stage: bytes of activations; of weights, gradients and optimizer; a percentage."""

MEMORY_METRICS = ("peak memory", "max_memory_allocated", *LAYER_METRICS)
"""What a row may publish instead of a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Degrees, batch and switches of a job.

    Parameters
    ----------
    plan : ParallelPlan
        with dp
    global_batch, micro_batch, seq_len : int
    assumptions : tuple[str, ...]
    published : bool
        whether degrees and batch are the row's own
    """

    plan: ParallelPlan
    global_batch: int
    micro_batch: int
    seq_len: int
    assumptions: tuple[str, ...]
    published: bool = True

    @property
    def num_ranks(self) -> int:
        """dp · tp · cp · pp."""
        plan = self.plan
        return (plan.dp or 1) * plan.tp * plan.cp * plan.pp


def layout_of(
    row: StepRow,
    profile: Profile,
    recipe: Mapping[str, Any] = MappingProxyType({}),
    kernels: Collection[str] = (),
) -> Layout:
    """The plan and the batch of a row.

    Parameters
    ----------
    row : StepRow
    profile : Profile
        which says what the row does not
    recipe : Mapping[str, Any]
        fields of the plan that take the place of the profile's
    kernels : Collection[str]
        attention kernels whose times are known on the row's GPU

    Raises
    ------
    RefusedError
        when degrees or batch are not published, or contradict each other
    """
    assumed: list[str] = []
    offloaded, by_policy = offload_of(row)
    degrees: dict[str, Any] = _degrees(row, assumed)
    seq_len, micro, batch = _batch(row, degrees, assumed)
    notes = row.notes.lower()
    apart = "overlap off" in notes and "dp" in notes
    said: dict[str, Any] = {
        **degrees,
        "ep": row.ep or _noted(row)[1],
        "sequence_parallel": _sequence_parallel(row, profile) if degrees["tp"] > 1 else None,
        **sharding_of(row, profile, degrees["dp"] * degrees["cp"], assumed),
        **({} if "recompute" in recipe else recompute_of(row, profile, degrees["pp"] * (row.vpp or 1), assumed)),
        **schedule_of(row, degrees["pp"], assumed),
        **offloaded,
    }
    assumed += by_policy
    switches = profile.switches(
        {**said, **recipe}, replicas=degrees["dp"] * degrees["cp"], kernels=kernels, dtype=_dtype(row, profile)
    )
    if "flashattention" in notes and "no flashattention" not in notes and switches["attention"] == "unfused":
        switches["attention"] = "flash"
    if switches["attention"] != profile.attention:
        assumed.append(f"attention: {switches['attention']}, the profile's is {profile.attention}")
    if apart:
        switches |= {"overlap_dp": False, "overlap_tp": False, "tp_overlap": "none"}
    if row.metric in LAYER_METRICS:
        assumed.append("model: its layers alone, without embedding and head, as papers on memory count")
    if apart:
        assumed.append("overlap: off, as the row says")
    plan = ParallelPlan(**{**switches, **said, **recipe})
    if row.metric == LAYER_TIME:
        assumed.append("model: one layer of it, the difference of two and of one")
    return Layout(
        plan=plan,
        global_batch=batch,
        micro_batch=micro,
        seq_len=seq_len,
        assumptions=tuple(assumed),
        published=batch == (row.global_batch or batch) and ONE_SEQUENCE not in assumed,
    )


def _degrees(row: StepRow, assumed: list[str]) -> dict[str, int]:
    """tp, pp, cp and dp, whose product is the row's GPUs."""
    gpus = row.gpus
    if gpus is None and row.metric in LAYER_METRICS and row.tp is not None:
        gpus = row.tp * (row.pp or 1)
        assumed.append("gpus: those of one replica, no number is published")
    if gpus is None:
        raise RefusedError("layout", "the number of GPUs is not published")
    if row.tp is None and row.pp is None and gpus > 1:
        raise RefusedError("layout", f"{gpus} GPUs without tp and pp")
    found = {"tp": row.tp or 1, "pp": row.pp or 1, "cp": row.cp or _noted(row)[0]}
    replica = found["tp"] * found["pp"] * found["cp"]
    dp = gpus // replica
    if dp * replica != gpus:
        raise RefusedError("numbers", f"{gpus} GPUs are no multiple of tp {row.tp} x pp {row.pp} x cp {row.cp}")
    if row.dp is not None and row.dp != dp:
        if row.dp * replica > gpus:
            detail = f"tp {found['tp']} x pp {found['pp']} x cp {found['cp']} x dp {row.dp} on {gpus} GPUs"
            raise RefusedError("numbers", detail)
        assumed.append(f"gpus: dp {row.dp} uses {row.dp * replica} of the {gpus} GPUs")
        dp = row.dp
    return found | {"dp": dp}


def _dtype(row: StepRow, profile: Profile) -> str:
    """The recipe of a row; words that are not known are refused where the format itself is asked for."""
    try:
        return dtype_of(row, profile)[0]
    except RefusedError:
        return "bf16"


def _noted(row: StepRow) -> tuple[int, int]:
    """cp and ep of a row's notes."""
    found = _CP_EP.search(row.notes)
    return (int(found[1]), int(found[2])) if found else (1, 1)


def _batch(row: StepRow, degrees: dict[str, int], assumed: list[str]) -> tuple[int, int, int]:
    """Sequence length, micro-batch and global batch."""
    if row.seq_len is None:
        raise RefusedError("batch", "the sequence length is not published")
    micro = row.micro_batch
    batch = row.global_batch
    if batch is None and micro is not None and row.grad_accum is not None:
        batch = micro * row.grad_accum * degrees["dp"]
    if batch is None and micro is not None and degrees["pp"] == 1 and row.metric not in MEMORY_METRICS:
        assumed.append("batch: one micro-batch a step")
        batch = micro * degrees["dp"]
    if batch is None and row.metric in LAYER_METRICS:
        assumed.append("batch: as many micro-batches in flight as the schedule lets in")
        batch = (degrees["pp"] if (row.vpp or 1) > 1 else 1) * (micro or 1) * degrees["dp"]
    if batch is None and row.metric in MEMORY_METRICS:
        assumed.append("batch: twice as many micro-batches as stages; the peak is the same with more")
        batch = 2 * degrees["pp"] * (micro or 1) * degrees["dp"]
    if batch is None:
        raise RefusedError("batch", "the global batch is not published")
    if micro is None:
        micro = 1
        if row.grad_accum is not None and batch % (row.grad_accum * degrees["dp"]) == 0:
            micro = batch // (row.grad_accum * degrees["dp"])
        elif degrees["pp"] > 1 and row.metric in MEMORY_METRICS and row.metric not in LAYER_METRICS:
            raise RefusedError("batch", "the micro-batch is not published, and what a stage holds goes with it")
        elif batch > degrees["dp"]:
            assumed.append(ONE_SEQUENCE)
    return row.seq_len, micro, _whole(batch, micro, degrees["dp"], assumed)


def _whole(batch: int, micro: int, dp: int, assumed: list[str]) -> int:
    """The batch that is nearest to the published one and whole on every replica."""
    nearest = max(1, round(batch / (micro * dp))) * micro * dp
    if abs(nearest - batch) > _ROUNDED * batch:
        raise RefusedError("numbers", f"global batch {batch} is no multiple of micro-batch {micro} x dp {dp}")
    if nearest != batch:
        assumed.append(f"batch: {nearest}; the published {batch} is no multiple of micro-batch {micro} x dp {dp}")
    return nearest


def _sequence_parallel(row: StepRow, profile: Profile) -> bool:
    text = f"{row.recompute} {row.sequence_parallel}".lower()
    if "no sp" in text or row.sequence_parallel == "no" or "without sequence parallel" in row.notes.lower():
        return False
    return True if "sequence parallel" in text or row.sequence_parallel == "yes" else profile.sequence_parallel
