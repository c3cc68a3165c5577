"""The end of a step where something is offloaded: gradients go to their place, subgroups are updated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustersim.workload.gradients import Reduced
from clustersim.workload.offload.gradient_path import gradient_path
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.update import Updated, write_updates
from clustersim.workload.op import Delay, HostLaunch
from clustersim.workload.passes.fragment import stream_of
from clustersim.workload.pipeline import Trail
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.shard import WIDTH, Shard

__all__ = ["OffloadedStep", "write_offloaded"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OffloadedStep:
    """One step's gradients and updates in a program.

    Parameters
    ----------
    policy : OffloadPolicy
    subgroups : Sequence[Subgroup]
        of the stage
    gathered : Mapping[int, Sequence[int]]
        by subgroup: ops after which its gradients are where they wait
    updated : Updated
    done : int
        the op after which everything is where it lives
    """

    policy: OffloadPolicy
    subgroups: Sequence[Subgroup]
    gathered: Mapping[int, Sequence[int]]
    updated: Updated
    done: int

    def brings(self, chunk: int, blocks: Sequence[int]) -> list[int]:
        """Ops that bring the new weights of some blocks."""
        return sorted(
            self.updated.arrived[s.index] for s in self.subgroups if s.chunk == chunk and set(s.blocks) & set(blocks)
        )

    def arrivals(self, trail: Trail) -> list[tuple[int, tuple[int, int]]]:
        """Ops, each with the chunk and block whose next forward pass waits for it."""
        if not self.policy.overlaps_forward:
            return [(self.done, min(trail.first_use, key=trail.first_use.__getitem__))]
        return [(self.updated.arrived[s.index], (s.chunk, min(s.blocks))) for s in self.subgroups]

    def gathers(self, following: Trail) -> list[tuple[int, int]]:
        """(op of this step, gathering of weights in the next one that waits for it)."""
        if not self.policy.overlaps_forward:
            return [(self.done, op) for op in following.gathers]
        return [
            (op, gather) for (chunk, blocks), gather in following.gathered.items() for op in self.brings(chunk, blocks)
        ]

    def holds(self, following: OffloadedStep) -> list[tuple[int, int]]:
        """(op of this step, op of the following one that waits for it), of one subgroup each."""
        pairs = []
        for subgroup in self.subgroups:
            index = subgroup.index
            before = list(self.updated.last[index])
            if self.policy.depends(subgroup) == "previous step":
                before += self.gathered[index]
            if self.updated.validated is not None:
                before.append(self.updated.validated)
            pairs += [(op, first) for op in before for first in following.updated.first[index]]
        return pairs


def write_offloaded(
    program: Program,
    policy: OffloadPolicy,
    subgroups: Sequence[Subgroup],
    reduced: Sequence[Reduced],
    trail: Trail,
    shard: Shard,
    plan: ParallelPlan,
    *,
    shared: Sequence[int],
    step: int,
) -> OffloadedStep:
    """Append what follows the passes and reductions.

    Parameters
    ----------
    program : Program
    policy : OffloadPolicy
    subgroups : Sequence[Subgroup]
        of the stage
    reduced : Sequence[Reduced]
        buckets whose gradients are complete; where they leave with each micro-batch, already at their place
    trail : Trail
    shard : Shard
    plan : ParallelPlan
        resolved
    shared : Sequence[int]
        sums of gradients that several ranks of a replica hold
    step : int
        of the policy's period
    """
    width = WIDTH[shard.gradient_dtype]
    gathered: dict[int, Sequence[int]] = {}
    for subgroup in reversed(subgroups):
        ops = sorted(_complete(subgroup, reduced, trail, policy))
        if not policy.each_micro_batch:
            tier = policy.place(subgroup).gradients
            path = gradient_path(policy, tier, subgroup.parameters, width=width)
            for op in (*path.leave, *path.arrive):
                ops = [program.add(op, stream=stream_of(op), after=ops, phase="optimizer")]
        gathered[subgroup.index] = ops
    collects = plan.memory_breakdown and plan.launch != "none"
    # two collections when the passes are through, two before the next: of the thread that updates
    collection = HostLaunch(name="collect garbage", kind=plan.launch, collections=2) if collects else None
    updated = write_updates(
        program,
        policy,
        subgroups,
        gathered,
        recipe=shard.recipe,
        optimizer=plan.optimizer,
        kernels_of=plan.update_kernels,
        width=width,
        clip=plan.clip,
        step=step,
        exits=[*trail.exits, *shared],
        opening=collection,
    )
    marker = Delay(name="updated", kind="barrier", measured_ns=0, category="host")
    ends = sorted({op for ops in updated.last.values() for op in ops})
    if collection is not None:
        ends = [program.add(collection, stream="cpu", after=ends, phase="optimizer")]
    done = program.add(marker, stream="updated", after=ends, phase="optimizer")
    return OffloadedStep(policy=policy, subgroups=subgroups, gathered=gathered, updated=updated, done=done)


def _complete(subgroup: Subgroup, reduced: Sequence[Reduced], trail: Trail, policy: OffloadPolicy) -> set[int]:
    """Ops that complete a subgroup's gradients, and bring them to their place where that happens inside the passes."""
    chunk, blocks = subgroup.chunk, set(subgroup.blocks)
    if policy.each_micro_batch:
        return {trail.completed[chunk, block] for block in blocks}
    return {
        r.op for r in reduced if r.chunk == chunk and r.replicas.axis == subgroup.axis and blocks & set(r.bucket.blocks)
    }
