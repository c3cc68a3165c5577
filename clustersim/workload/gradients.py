"""What happens to the gradients of a stage: reduction over replicas in buckets, and the sums that sharing requires."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from clustersim.workload.buckets import Bucket, buckets, default_bucket_parameters
from clustersim.workload.layers.embedding import embedding_parameters
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Op
from clustersim.workload.pipeline import Trail
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.shard import WIDTH, Shard
from clustersim.workload.sharding.movement import Movement, ops_of
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.stage_chunk import StageChunk

__all__ = ["Reduced", "write_exchange", "write_reductions", "write_refresh", "write_shared"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reduced:
    """A bucket whose gradient is complete.

    Parameters
    ----------
    chunk : int
        of the stage
    bucket : Bucket
    replicas : Replicas
        of its weights
    op : int
        whose end completes it
    """

    chunk: int
    bucket: Bucket
    replicas: Replicas
    op: int


def write_reductions(
    program: Program,
    chunks: Sequence[StageChunk],
    trail: Trail,
    shard: Shard,
    plan: ParallelPlan,
    kinds: Sequence[Replicas],
) -> tuple[Reduced, ...]:
    """Reduce the gradients over the replicas, in the order in which the last backward passes complete them.

    With ``overlap_dp`` a bucket goes as soon as the last micro-batch has been through its blocks; without, one bucket a
    chunk goes when all micro-batches have. Without replicas nothing is sent, nor where the passes have done so already.
    Chunks of which two stages hold copies go in the order of the model, the last first, on both.

    Parameters
    ----------
    program : Program
    chunks : Sequence[StageChunk]
        of this stage
    trail : Trail
    shard : Shard
    plan : ParallelPlan
        resolved
    kinds : Sequence[Replicas]
        of dense weights and of those of experts
    """
    width = WIDTH[shard.gradient_dtype]
    done = []
    for index in _in_order(chunks, trail):
        for replicas in kinds:
            weights = [replicas.parameters(p.block) for p in chunks[index].placed]
            at_least = default_bucket_parameters(replicas.ranks)
            if plan.bucket_bytes is not None and replicas.sharding.weights == 1:
                at_least = plan.bucket_bytes // width
            travels = replicas.sharding.reduce and not replicas.in_passes
            for bucket in buckets(weights, at_least=at_least if plan.overlap_dp else None):
                op = max(trail.completed[index, block] for block in bucket.blocks)
                if travels:
                    after = (op,) if plan.overlap_dp else trail.exits
                    moves = replicas.sharding.reduce
                    op = _write(program, moves, bucket, replicas, after, phase="backward", chunk=chunks[index])
                done.append(Reduced(chunk=index, bucket=bucket, replicas=replicas, op=op))
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
    ends = {p.block.kind for p in placed} & _holders(shard.model)
    if len(ends) == 1:
        nbytes = width * embedding_parameters(shard)
        op = Collective(
            name="all-reduce embedding gradients", kind="all_reduce", slot="embedding", nbytes=nbytes, axis="pp"
        )
        holders = [r for r in reduced if ends & {chunks[r.chunk].placed[b].block.kind for b in r.bucket.blocks}]
        numbers += [program.add(op, stream="embedding", after=[r.op], phase="backward") for r in holders]
    return numbers


def _holders(model: Model) -> set[str]:
    """Kinds of the two blocks that share the embedding: where only one of them is, its gradient is half of the sum."""
    if model.tied_embeddings:
        return {"embedding", "head"}
    return {"embedding", "mtp embedding"} if model.mtp else set()


def write_exchange(program: Program, chunks: Sequence[StageChunk], kinds: Sequence[Replicas], *, update: int) -> int:
    """Exchange weights between workers after the last of their steps; number of the op that ends it.

    All of a stage goes at once, and the outer update takes its turn among the kernels: nothing runs beside it.
    """
    last = update
    blocks = [p.block for chunk in chunks for p in chunk.placed]
    for replicas in kinds:
        parameters = sum(replicas.parameters(block) for block in blocks)
        if not replicas.sharding.exchange or not parameters:
            continue
        numbers = [last]
        ranks = replicas.ranks if replicas.pads else 1
        ops = ops_of(replicas.sharding.exchange, parameters, axis=replicas.axis, ranks=ranks)
        for op in ops:
            stream = op.slot if isinstance(op, Collective) else "compute"
            numbers.append(program.add(op, stream=stream, after=numbers[-1:], phase="optimizer"))
        last = numbers[-1]
    return last


def write_refresh(
    program: Program,
    chunks: Sequence[StageChunk],
    reduced: Sequence[Reduced],
    trail: Trail,
    plan: ParallelPlan,
    *,
    updated: Callable[[Reduced], Sequence[int]],
) -> list[tuple[int, tuple[int, int]]]:
    """Bring updated weights to where they are used whole, in the order in which the next forward passes use them.

    With ``overlap_dp`` and ``overlap_refresh`` each bucket holds up only its own blocks; without, the next step begins
    when all are there.

    Parameters
    ----------
    program : Program
    chunks : Sequence[StageChunk]
        of this stage
    reduced : Sequence[Reduced]
    trail : Trail
    plan : ParallelPlan
        resolved
    updated : Callable
        the ops that update the weights of a bucket

    Returns
    -------
    list[tuple[int, tuple[int, int]]]
        ops, each with the chunk and block whose next forward pass waits for it
    """
    place = {index: n for n, index in enumerate(reversed(_in_order(chunks, trail)))}
    user = {r: min((r.chunk, block) for block in r.bucket.blocks) for r in reduced}
    arrivals: list[tuple[int, tuple[int, int]]] = []
    for r in sorted(reduced, key=lambda r: (place[r.chunk] if _copies(chunks) else 0, trail.first_use[user[r]])):
        if not r.replicas.sharding.refresh:
            continue
        moves = r.replicas.sharding.refresh
        last = _write(program, moves, r.bucket, r.replicas, updated(r), phase="optimizer", chunk=chunks[r.chunk])
        arrivals.append((last, user[r]))
    if not (plan.overlap_dp and plan.overlap_refresh) and arrivals:
        return [(arrivals[-1][0], min(user.values(), key=trail.first_use.__getitem__))]
    return arrivals


def _in_order(chunks: Sequence[StageChunk], trail: Trail) -> list[int]:
    """Chunks in the order in which their gradients are complete, or from the model's end where stages hold copies."""
    if _copies(chunks):
        return sorted(range(len(chunks)), key=lambda c: -chunks[c].position)
    last = {c: max(op for (chunk, _), op in trail.completed.items() if chunk == c) for c in range(len(chunks))}
    return sorted(last, key=last.__getitem__)


def _copies(chunks: Sequence[StageChunk]) -> bool:
    return len({chunk.route for chunk in chunks}) > 1


def _write(
    program: Program,
    moves: Sequence[Movement],
    bucket: Bucket,
    replicas: Replicas,
    after: Sequence[int],
    *,
    phase: str,
    chunk: StageChunk,
) -> int:
    """Movements of a bucket one after the other; number of the last op."""
    last: list[int] = list(after)
    ops = ops_of(moves, bucket.parameters, axis=replicas.axis, ranks=replicas.ranks if replicas.pads else 1)
    slots: Iterator[str] = (op.slot for op in ops if isinstance(op, Collective))
    stream = next(slots)
    for op in ops:
        stream = _stream(op, stream)
        last = [program.add(op, stream=stream, after=last, phase=phase, stage=chunk.virtual_stage)]
    return last[0]


def _stream(op: Op, before: str) -> str:
    """Collectives stand on their slot's stream, kernels on that of the collective before them."""
    return op.slot if isinstance(op, Collective) else before
