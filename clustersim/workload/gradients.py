"""What happens to the gradients of a stage: reduction over replicas in buckets, and the sums that sharing requires."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clustersim.workload.buckets import Bucket, buckets, default_bucket_parameters
from clustersim.workload.layers.embedding import embedding_parameters
from clustersim.workload.op import Collective
from clustersim.workload.pipeline import StageChunk, Trail
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.shard import WIDTH, Shard

__all__ = ["Reduced", "write_gathers", "write_reductions", "write_shared"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduced:
    """A bucket whose gradient is complete.

    Parameters
    ----------
    chunk : int
        of the stage
    bucket : Bucket
    op : int
        whose end completes it
    """

    chunk: int
    bucket: Bucket
    op: int


def write_reductions(
    program: Program, chunks: Sequence[StageChunk], trail: Trail, shard: Shard, plan: ParallelPlan
) -> tuple[Reduced, ...]:
    """Reduce the gradients over the replicas, in the order in which the last backward passes complete them.

    With ``overlap_dp`` a bucket goes as soon as the last micro-batch has been through its blocks; without, one bucket a
    chunk goes when all micro-batches have. ZeRO-1 pads a bucket to a multiple of dp, as Megatron-LM does. Without
    replicas nothing is sent.

    Parameters
    ----------
    program : Program
    chunks : Sequence[StageChunk]
        of this stage
    trail : Trail
    shard : Shard
    plan : ParallelPlan
        resolved
    """
    width, replicas = WIDTH[shard.gradient_dtype], plan.dp or 1
    at_least = default_bucket_parameters(replicas) if plan.bucket_bytes is None else plan.bucket_bytes // width
    done = []
    for index in sorted(trail.last_backward, key=trail.last_backward.__getitem__):
        chunk, offset = chunks[index], trail.last_backward[index]
        weights = [p.block.parameters for p in chunk.placed]
        for bucket in buckets(weights, at_least=at_least if plan.overlap_dp else None):
            op = offset + chunk.backward.op_of_block[bucket.first_block]
            if replicas > 1:
                op = program.add(
                    _reduction(plan, width * _padded(bucket, plan)),
                    stream="dp",
                    after=[op if plan.overlap_dp else trail.exit],
                    phase="backward",
                    stage=chunk.virtual_stage,
                )
            done.append(Reduced(chunk=index, bucket=bucket, op=op))
    return tuple(done)


def write_shared(
    program: Program, chunks: Sequence[StageChunk], reduced: Sequence[Reduced], shard: Shard, plan: ParallelPlan
) -> list[int]:
    """Sum the gradients of weights that several ranks of one replica hold, after the reductions.

    Under sequence parallelism each rank has seen its part of the tokens only, so the gradients of norms and output
    biases are summed over tp. A tied embedding on two stages is summed over the two.

    Returns
    -------
    list[int]
        numbers of the ops
    """
    width = WIDTH[shard.gradient_dtype]
    numbers = []
    placed = [p for chunk in chunks for p in chunk.placed]
    partial = sum(p.block.replicated_parameters for p in placed if p.block.kind not in ("embedding", "head"))
    if shard.sequence_parallel and partial:
        op = Collective(
            name="all-reduce norm gradients", kind="all_reduce", slot="tp", nbytes=width * partial, axis="tp"
        )
        numbers.append(program.add(op, stream="tp", after=[reduced[-1].op], phase="backward"))
    if shard.model.tied_embeddings and plan.pp > 1:
        nbytes = width * embedding_parameters(shard)
        op = Collective(
            name="all-reduce embedding gradients", kind="all_reduce", slot="embedding", nbytes=nbytes, axis="pp"
        )
        for r in reduced:
            kinds = {chunks[r.chunk].placed[block].block.kind for block in r.bucket.blocks}
            if kinds & {"embedding", "head"}:
                numbers.append(program.add(op, stream="embedding", after=[r.op], phase="backward"))
    return numbers


def write_gathers(
    program: Program,
    chunks: Sequence[StageChunk],
    reduced: Sequence[Reduced],
    trail: Trail,
    shard: Shard,
    plan: ParallelPlan,
    *,
    update: int,
) -> None:
    """Gather the updated weights of ZeRO-1, in the order in which the next step's forward passes use them.

    With ``overlap_dp`` each bucket holds up only its own blocks; without, the next step begins when all are there.

    Parameters
    ----------
    program : Program
    chunks : Sequence[StageChunk]
        of this stage
    reduced : Sequence[Reduced]
    trail : Trail
    shard : Shard
    plan : ParallelPlan
        resolved
    update : int
        the optimizer's op
    """
    first_use = {
        r: trail.first_forward[r.chunk] + chunks[r.chunk].forward.op_of_block[r.bucket.first_block] for r in reduced
    }
    last = update
    for r in sorted(reduced, key=first_use.__getitem__):
        nbytes = shard.recipe.gathered_width * _padded(r.bucket, plan)
        op = Collective(name="all-gather weights", kind="all_gather", slot="dp", nbytes=nbytes, axis="dp")
        last = program.add(op, stream="dp", after=[update], phase="optimizer", stage=chunks[r.chunk].virtual_stage)
        if plan.overlap_dp:
            program.carry(last, first_use[r])
    if not plan.overlap_dp:
        program.carry(last, min(trail.first_forward.values()))


def _padded(bucket: Bucket, plan: ParallelPlan) -> int:
    """Parameters of a bucket as they are sent."""
    replicas = plan.dp or 1
    return -(-bucket.parameters // replicas) * replicas if plan.zero == 1 else bucket.parameters


def _reduction(plan: ParallelPlan, nbytes: int) -> Collective:
    kind, verb = ("reduce_scatter", "reduce-scatter") if plan.zero == 1 else ("all_reduce", "all-reduce")
    return Collective(name=f"{verb} gradients", kind=kind, slot="dp", nbytes=nbytes, axis="dp")
