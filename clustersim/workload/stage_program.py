"""The program of one pipeline stage: its micro-batches, its gradients, its update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from clustersim.faults import BadInput, Fault
from clustersim.hardware.kernel import Kernel
from clustersim.workload.checkpoint.save import Turn, write_saves
from clustersim.workload.checkpoint.state import State, state_of
from clustersim.workload.gradients import Reduced, write_exchange, write_reductions, write_refresh, write_shared
from clustersim.workload.issue import issue
from clustersim.workload.layers.block import Block
from clustersim.workload.offload.resident import resident_bytes
from clustersim.workload.offload.step import OffloadedStep, write_offloaded
from clustersim.workload.op import Collective, Compute
from clustersim.workload.passes.fragment import WEIGHTS, WORKSPACE
from clustersim.workload.pipeline import Trail, write_units
from clustersim.workload.placeholders import kept_placeholders
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.schedule import Overlapped, Unit
from clustersim.workload.shard import WIDTH, Shard
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.stage_chunk import StageChunk
from clustersim.workload.weights import Weights

__all__ = ["stage_program", "weights_of"]

OPTIMIZER = "gpu/optimizer"


def stage_program(
    stage: int,
    chunks: Sequence[StageChunk],
    row: Sequence[Unit | Overlapped],
    shard: Shard,
    plan: ParallelPlan,
    kinds: Sequence[Replicas],
    posts: Mapping[int, Sequence[Unit]] | None = None,
) -> Program:
    """All ops of one step on a rank of ``stage``, or of the steps from one exchange between workers to the next.

    The update waits for every gradient of the stage: the norm that gradients are clipped by needs them all. A host that
    reads it (``plan.wait_norm``) issues the rest of the update afterwards. The
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
    posts : Mapping[int, Sequence[Unit]], optional
        as in :func:`~clustersim.workload.pipeline.write_units`

    Raises
    ------
    BadInput
        when state is to be saved that replicas do not share
    """
    program = Program(f"stage {stage}")
    waits = plan.launch != "none" and plan.wait_norm
    blocks = [p.block for chunk in chunks for p in chunk.placed]
    resident: Counter[str] = Counter()
    updates, gathered, copied = [], [], 0
    states = [State() for _ in range(plan.period)]
    checked: list[Kernel] = []
    offload = plan.offload
    subgroups = [subgroup for chunk in chunks for subgroup in chunk.subgroups]
    for kind in kinds:
        own = weights_of(kind, blocks, shard, plan, replicas=kinds[0].ranks)
        mine = [subgroup for subgroup in subgroups if subgroup.axis == kind.axis]
        if offload is None or not mine:
            resident.update(own.resident_bytes())
        else:
            width, on_gpu = WIDTH[shard.gradient_dtype], own.resident_bytes()
            resident.update(resident_bytes(offload, mine, recipe=shard.recipe, width=width, on_gpu=on_gpu))
        for number, state in enumerate(states if own.parameters and plan.checkpoint is not None else ()):
            state.update(state_of(own, kind, offload=offload, subgroups=mine, step=number))
        if own.parameters and waits:
            checked += own.checks()
            updates.append(replace(own.update(), kernels=own.step()))
        elif own.parameters:
            updates.append(own.update())
        copied += own.update_workspace()
        whole = own.gathered_nbytes()
        if whole:
            gathered.append(
                Collective(name="all-gather momentum", kind="all_gather", slot=kind.axis, nbytes=whole, axis="dp")
            )
        frozen = sum(kind.frozen(block) for block in blocks)
        resident[WEIGHTS] += WIDTH[shard.recipe.weights] * -(-frozen // kind.sharding.weights)
        resident[WEIGHTS] += int(kind.sharding.extra_weights * (own.parameters + frozen))
        resident[OPTIMIZER] += int(kind.sharding.exchange_state * -(-own.parameters // own.state_shards))
    if plan.placeholders == "kept" and not kinds[0].in_passes:
        resident[WORKSPACE] += kept_placeholders(blocks, WIDTH[shard.recipe.weights])
    program.resident.update({key: nbytes for key, nbytes in resident.items() if nbytes})
    update_all = replace(updates[0], kernels=tuple(kernel for one in updates for kernel in one.kernels))

    check = Compute(name="gradient norm", kind="optimizer", kernels=tuple(checked), category="optimizer")
    fences: dict[int, Sequence[int]] = {}
    steps: list[_Step] = []
    num_steps = kinds[0].sharding.sync_every * plan.period
    if plan.checkpoint is not None and num_steps > plan.period:
        rule = "has workers whose states differ between two exchanges, which plan.checkpoint cannot save"
        raise BadInput([Fault(key="plan.sharding", value=kinds[0].sharding.sync_every, rule=rule)])
    for number in range(num_steps):
        trail = write_units(program, chunks, row, posts)
        reduced = write_reductions(program, chunks, trail, shard, plan, kinds)
        shared = write_shared(program, chunks, reduced, shard, plan)
        if offload is not None:
            done = write_offloaded(
                program, offload, subgroups, reduced, trail, shard, plan, shared=shared, step=number % offload.period
            )
            brings = partial(_brings, done)
            arrivals = write_refresh(program, chunks, reduced, trail, plan, updated=brings)
            arrivals += done.arrivals(trail)
            begun = [op for ops in done.updated.first.values() for op in ops]
            steps.append(_Step(trail=trail, update=done.done, begun=begun, arrivals=arrivals, offloaded=done))
            program.end_step()
            continue
        ready = sorted({*(r.op for r in reduced), *shared, *trail.exits})
        whole_here = [program.add(op, stream=op.slot, after=ready, phase="optimizer") for op in gathered]
        before, room = whole_here or ready, {WORKSPACE: copied} if copied else None
        if checked:
            before = [program.add(check, stream="compute", after=before, start_bytes=room, phase="optimizer")]
        update = program.add(
            update_all,
            stream="compute",
            after=before,
            start_bytes=None if checked else room,
            end_bytes={WORKSPACE: -copied} if copied else None,
            phase="optimizer",
        )
        if checked:
            fences[update] = before
        exchanged = update
        if number == num_steps - 1:
            exchanged = write_exchange(program, chunks, kinds, update=update)
        arrivals = write_refresh(program, chunks, reduced, trail, plan, updated=partial(_update, exchanged))
        if exchanged != update:
            arrivals.append((exchanged, min(trail.first_use, key=trail.first_use.__getitem__)))
        steps.append(_Step(trail=trail, update=exchanged, begun=[update], arrivals=arrivals))
        if plan.checkpoint is not None:
            program.end_step()
    for step, following in pairwise(steps):
        for held, op in step.holds(following):
            program.depend(op, after=[held])
    for held, op in steps[-1].holds(steps[0]):
        program.carry(held, op)
    issue(
        program,
        plan.launch,
        cuda_graphs=plan.cuda_graphs,
        fences=fences,
        hooked=plan.module_hooks,
        waits_in_layers=plan.wait_layers,
        waits_for_messages=plan.wait_messages,
        waits_for_kernels=plan.wait_kernels,
        collects=plan.memory_breakdown,
        collects_in_steps=plan.offload is None,
    )
    if plan.checkpoint is not None:
        write_saves(program, plan.checkpoint, [step.turn for step in steps], states)
    return program


def weights_of(
    kind: Replicas, blocks: Sequence[Block], shard: Shard, plan: ParallelPlan, *, replicas: int = 1
) -> Weights:
    """Those of one kind in all blocks of a stage, split as their replicas divide them.

    Their tensors are the matrices, those of queries, keys and values apart, and one for each norm. Gradients of all
    kinds, those of experts too, are averaged over the ``replicas`` of dense weights.
    """
    matrices = [matrix for block in blocks for matrix in kind.matrices(block)]
    norms = sum(kind.parameters(block) > 0 and not kind.matrices(block) for block in blocks)
    return Weights(
        parameters=sum(kind.parameters(block) for block in blocks),
        recipe=shard.recipe,
        optimizer=plan.optimizer,
        gradient_dtype=shard.gradient_dtype,
        weight_shards=kind.sharding.weights,
        gradient_shards=kind.sharding.gradients,
        state_shards=kind.sharding.optimizer,
        matrices=matrices,
        clip=plan.clip,
        kernels_of=plan.update_kernels,
        num_tensors=sum(matrix.count for matrix in matrices) + norms,
        passes=plan.gradient_passes,
        replicas=replicas,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    """One optimizer step in a program.

    Parameters
    ----------
    trail : Trail
    update : int
        the op after which weights are those of the next step
    begun : Sequence[int]
        first ops that change the state
    arrivals : Sequence[tuple[int, tuple[int, int]]]
        ops that bring weights, each with the chunk and block that wait for it
    offloaded : OffloadedStep, optional
    """

    trail: Trail
    update: int
    begun: Sequence[int]
    arrivals: Sequence[tuple[int, tuple[int, int]]]
    offloaded: OffloadedStep | None = None

    @property
    def turn(self) -> Turn:
        """Where saves of the state are, and what they hold up."""
        begins = [min(self.trail.first_use.values()), *self.trail.gathers]
        return Turn(updated=self.update, begins=begins, changes=self.begun)

    def holds(self, following: _Step) -> list[tuple[int, int]]:
        """(op of this step, op of the following step that waits for it): what stream order does not say."""
        found = [(op, following.trail.first_use[user]) for op, user in self.arrivals]
        if self.offloaded is None or following.offloaded is None:
            return found + [(self.update, op) for op in following.trail.gathers]
        return found + self.offloaded.gathers(following.trail) + self.offloaded.holds(following.offloaded)


def _update(op: int, bucket: Reduced) -> list[int]:
    """One op that updates every bucket."""
    return [op]


def _brings(step: OffloadedStep, bucket: Reduced) -> list[int]:
    """Ops that bring the new weights of a bucket."""
    return step.brings(bucket.chunk, bucket.bucket.blocks)
