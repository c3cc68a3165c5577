"""The program of one pipeline stage: its micro-batches, its gradients, its update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from clustersim.workload.gradients import write_reductions, write_refresh, write_shared
from clustersim.workload.optimizer import optimizer_step, resident_bytes
from clustersim.workload.passes.fragment import WEIGHTS
from clustersim.workload.pipeline import write_units
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.schedule import Overlapped, Unit
from clustersim.workload.shard import Shard
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.stage_chunk import StageChunk

__all__ = ["stage_program"]


def stage_program(
    stage: int,
    chunks: Sequence[StageChunk],
    row: Sequence[Unit | Overlapped],
    shard: Shard,
    plan: ParallelPlan,
    kinds: Sequence[Replicas],
) -> Program:
    """All ops of one step on a rank of ``stage``.

    The update waits for every gradient of the stage: the norm that gradients are clipped by needs them all. The
    all-reduce of that one number over the stages is left out; so a stage may begin its update while an earlier one
    still computes.

    Parameters
    ----------
    stage : int
    chunks : Sequence[StageChunk]
        of this stage
    row : Sequence[Unit | Overlapped]
        its row of the schedule
    shard : Shard
    plan : ParallelPlan
        resolved
    kinds : Sequence[Replicas]
        of dense weights and of those of experts
    """
    program = Program(f"stage {stage}")
    blocks = [p.block for chunk in chunks for p in chunk.placed]
    counts = [(kind, sum(kind.parameters(block) for block in blocks)) for kind in kinds]
    resident: Counter[str] = Counter()
    updates = []
    for kind, parameters in counts:
        sharding = kind.sharding
        resident.update(_resident(parameters, shard, kind))
        step = optimizer_step(
            -(-parameters // sharding.gradients),
            dtype=shard.dtype,
            gradient_dtype=shard.gradient_dtype,
            shards=sharding.optimizer // sharding.gradients,
        )
        updates += [step] if parameters else []
        resident[WEIGHTS] += int(sharding.extra_weights * parameters)
    program.resident.update(resident)

    trail = write_units(program, chunks, row)
    reduced = write_reductions(program, chunks, trail, shard, plan, kinds)
    shared = write_shared(program, chunks, reduced, shard, plan)
    update = program.add(
        replace(updates[0], kernels=tuple(kernel for step in updates for kernel in step.kernels)),
        stream="compute",
        after=sorted({*(r.op for r in reduced), *shared, *trail.exits}),
        phase="optimizer",
    )
    write_refresh(program, chunks, reduced, trail, plan, update=update)
    return program


def _resident(parameters: int, shard: Shard, kind: Replicas) -> dict[str, int]:
    """Bytes held throughout, by memory key: each of the three over its own number of ranks."""
    sharding = kind.sharding
    splits = {"gpu/weights": sharding.weights, "gpu/gradients": sharding.gradients, "gpu/optimizer": sharding.optimizer}
    return {
        key: resident_bytes(-(-parameters // ranks), dtype=shard.dtype, gradient_dtype=shard.gradient_dtype)[key]
        for key, ranks in splits.items()
    }
