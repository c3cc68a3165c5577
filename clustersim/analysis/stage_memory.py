"""What the GPUs of each pipeline stage hold at their peak, and which op brings them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from clustersim.analysis.peak import peak
from clustersim.topology.topology import Topology
from clustersim.trace.record import LaneRecord, Record
from clustersim.workload.op import Compute

__all__ = ["StageMemory", "stage_memory", "worst_stage"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StageMemory:
    """The GPU of a stage that has the least room left.

    Attributes
    ----------
    job : int
        index into the record's jobs
    stage : int or None
        of the pipeline, or the device of a data-flow graph; None where the programs name none
    rank : int
        the representative of its class
    peak_bytes, capacity_bytes : int
        most that it holds, and what it has [B]
    by_category : Mapping[str, int]
        what is held at the peak [B]
    peak_op : str or None
        name of the op whose allocation reaches the peak; None when what is resident is the peak
    phase : str or None
        of that op
    layer, micro_batch : int or None
        that it belongs to
    time_s : float or None
        when it starts or ends, which is when the peak is reached [s]
    """

    job: int
    stage: int | None
    rank: int
    peak_bytes: int
    capacity_bytes: int
    by_category: Mapping[str, int]
    peak_op: str | None = None
    phase: str | None = None
    layer: int | None = None
    micro_batch: int | None = None
    time_s: float | None = None

    @property
    def room_bytes(self) -> int:
        """What is left at the peak, negative where it does not fit [B]."""
        return self.capacity_bytes - self.peak_bytes


def stage_memory(record: Record, topology: Topology) -> list[StageMemory]:
    """One entry a job and stage, in their order: of all its ranks the one with the least room left."""
    tightest: dict[tuple[int, int], StageMemory] = {}
    for lane in record.lanes:
        held = _held(record, topology, lane)
        key = (lane.job, -1 if held.stage is None else held.stage)
        if key not in tightest or held.room_bytes < tightest[key].room_bytes:
            tightest[key] = held
    return [tightest[key] for key in sorted(tightest)]


def worst_stage(stages: Sequence[StageMemory]) -> StageMemory:
    """That with the least room left, the first of several."""
    return min(stages, key=lambda stage: stage.room_bytes)


def _held(record: Record, topology: Topology, lane: LaneRecord) -> StageMemory:
    arrays = lane.arrays
    top = peak(lane).get("gpu")
    devices = record.jobs[lane.job].devices
    place = lane.rank if devices is None else int(devices[lane.rank])
    capacity = topology.gpus[int(topology.gpu_of[place])].memory_bytes
    held = StageMemory(
        job=lane.job,
        stage=_stage(lane),
        rank=lane.rank,
        peak_bytes=0 if top is None else top.nbytes,
        capacity_bytes=capacity,
        by_category={} if top is None else top.by_category,
    )
    if top is None or top.op < 0:
        return held
    op = top.op % len(arrays)
    return replace(
        held,
        peak_op=arrays.ops[arrays.op[op]].name,
        phase=arrays.phases[arrays.phase[op]] or None,
        layer=_known(int(arrays.layer[op])),
        micro_batch=_known(int(arrays.micro_batch[op])),
        time_s=top.time_ns / 1e9,
    )


def _stage(lane: LaneRecord) -> int | None:
    """The least virtual stage that a rank computes for: chunks are dealt to the stages from the first one on."""
    arrays = lane.arrays
    computes = np.array([isinstance(op, Compute) for op in arrays.ops], dtype=bool)
    stages = arrays.stage[computes[arrays.op] & (arrays.stage >= 0)]
    return int(stages.min()) if len(stages) else None


def _known(number: int) -> int | None:
    return number if number >= 0 else None
