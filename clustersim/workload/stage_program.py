"""The program of one pipeline stage: its micro-batches, its gradients, its update."""

from __future__ import annotations

from collections.abc import Sequence

from clustersim.workload.gradients import write_gathers, write_reductions, write_shared
from clustersim.workload.optimizer import optimizer_step, resident_bytes
from clustersim.workload.pipeline import StageChunk, write_units
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.schedule import Unit
from clustersim.workload.shard import Shard

__all__ = ["stage_program"]


def stage_program(
    stage: int, chunks: Sequence[StageChunk], units: Sequence[Unit], shard: Shard, plan: ParallelPlan
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
    units : Sequence[Unit]
        its row of the schedule
    shard : Shard
    plan : ParallelPlan
        resolved
    """
    program = Program(f"stage {stage}")
    parameters = sum(c.parameters for c in chunks)
    shards = plan.dp or 1 if plan.zero == 1 else 1
    resident = resident_bytes(parameters, dtype=shard.dtype, gradient_dtype=shard.gradient_dtype, shards=shards)
    program.resident.update(resident)

    trail = write_units(program, chunks, units, shard)
    reduced = write_reductions(program, chunks, trail, shard, plan)
    shared = write_shared(program, chunks, reduced, shard, plan)
    update = program.add(
        optimizer_step(parameters, dtype=shard.dtype, gradient_dtype=shard.gradient_dtype, shards=shards),
        stream="compute",
        after=sorted({*(r.op for r in reduced), *shared, trail.exit}),
        phase="optimizer",
    )
    if shards > 1:
        write_gathers(program, chunks, reduced, trail, shard, plan, update=update)
    return program
