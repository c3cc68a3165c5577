"""A chunk of the model on its stage: its passes as fragments, and where its activations come from and go to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clustersim.workload.layers.placed import Placed
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.passes.activation_offload import offloaded_layers
from clustersim.workload.passes.backward import backward, weight_backward
from clustersim.workload.passes.forward import forward
from clustersim.workload.passes.fragment import Fragment
from clustersim.workload.passes.parameter_group import ParameterGroup
from clustersim.workload.passes.slices import sliced_backward, sliced_forward
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.recompute import Recomputation
from clustersim.workload.schedule.placement import Placement
from clustersim.workload.shard import Shard
from clustersim.workload.tensor_overlap import TensorOverlap

__all__ = ["StageChunk", "hop", "stage_chunk"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StageChunk:
    """A chunk as its stage's program uses it.

    Parameters
    ----------
    virtual_stage : int
        for the trace: its position, counted on through the routes
    route, position : int
        which way it stands on, and where
    placed : tuple[Placed, ...]
    passes : tuple[Mapping[str, Fragment], ...]
        of each micro-batch, or of any where one stands for all, by kind of unit: F, B, I, W; with a star those of the
        last micro-batch
    hop_in, hop_out : int, optional
        stages from where activations come from to here, and from here to where they go; 0: another chunk of this stage;
        None: nowhere, at an end of the route
    message_nbytes : int
        activations, and gradients, between two stages [B]
    message_parts : int
        in which they go, one a rank that has them all, to be gathered where they come to
    subgroups : tuple[Subgroup, ...]
        in which its weights are updated where something is offloaded
    """

    virtual_stage: int
    route: int
    position: int
    placed: tuple[Placed, ...]
    passes: tuple[Mapping[str, Fragment], ...]
    hop_in: int | None
    hop_out: int | None
    message_nbytes: int
    message_parts: int = 1
    subgroups: tuple[Subgroup, ...] = ()

    @property
    def parameters(self) -> int:
        """Dense weights on one rank."""
        return sum(p.block.parameters for p in self.placed)

    @property
    def expert_parameters(self) -> int:
        """Weights of experts on one rank."""
        return sum(p.block.expert_parameters for p in self.placed)

    def fragment(self, kind: str, *, micro_batch: int, last: bool) -> Fragment:
        """The ops of a unit; those of the last micro-batch may reduce gradients that others keep."""
        passes = self.passes[micro_batch if len(self.passes) > 1 else 0]
        return passes.get(f"{kind}*", passes[kind]) if last else passes[kind]


def stage_chunk(
    placed: tuple[Placed, ...],
    shard: Shard,
    plan: ParallelPlan,
    *,
    stage: int,
    chunk: int,
    placement: Placement,
    kinds: frozenset[str],
    groups: tuple[ParameterGroup, ...] = (),
    last_groups: tuple[ParameterGroup, ...] = (),
    prefetch: int = 1,
) -> StageChunk:
    """The passes of one chunk of a resolved plan.

    Parameters
    ----------
    placed : tuple[Placed, ...]
        its blocks
    shard : Shard
    plan : ParallelPlan
        resolved
    stage, chunk : int
    placement : Placement
    kinds : frozenset[str]
        of the units that the schedule has
    groups, last_groups : tuple[ParameterGroup, ...]
        what travels with each micro-batch, and with the last one
    prefetch : int
        groups gathered ahead
    """
    route, position = placement.position(stage, chunk)
    before, after = placement.before(stage, chunk), placement.after(stage, chunk)
    recompute = Recomputation.of(
        plan.recompute,
        modules=plan.recompute_modules,
        method=plan.recompute_method,
        num_layers=plan.recompute_layers,
        early_stop=plan.recompute_early_stop,
    )
    away = offloaded_layers(placed, recompute) if plan.offload_activations else ()
    products = TensorOverlap.of(plan.tp_overlap, num_chunks=plan.tp_overlap_chunks)
    number = sum(len(r) for r in placement.routes[:route]) + position

    hop_in = None if before is None else hop(before[0], stage, placement.num_stages)
    hop_out = None if after is None else hop(stage, after[0], placement.num_stages)

    def fragment(kind: str, groups: tuple[ParameterGroup, ...]) -> Fragment:
        if shard.slices > 1:
            if kind == "F":
                return sliced_forward(placed, shard)
            return sliced_backward(placed, shard, overlap=plan.overlap_tp)
        if kind == "F":
            return forward(
                placed,
                shard,
                stage=number,
                recompute=recompute,
                sends=bool(hop_out),
                groups=groups,
                prefetch=prefetch,
                products=products,
                away=away,
            )
        if kind == "W":
            return weight_backward(placed, shard, stage=number, groups=groups)
        return backward(
            placed,
            shard,
            stage=number,
            recompute=recompute,
            overlap=plan.overlap_tp,
            receives=after is not None,
            sends=before is not None,
            groups=groups,
            prefetch=prefetch,
            weights=kind == "B",
            products=products,
            away=away,
        )

    passes = {kind: fragment(kind, groups) for kind in sorted(kinds)}
    if last_groups != groups:
        passes |= {f"{kind}*": fragment(kind, last_groups) for kind in sorted(kinds - {"F"})}
    return StageChunk(
        virtual_stage=number,
        route=route,
        position=position,
        placed=placed,
        passes=(passes,),
        hop_in=hop_in,
        hop_out=hop_out,
        message_nbytes=shard.residual_nbytes,
        message_parts=plan.tp if plan.scatter_gather and not shard.sequence_parallel else 1,
    )


def hop(sender: int, receiver: int, num_stages: int) -> int:
    """Stages from one to the other, the shorter way round; half way round counts as onwards."""
    hop = (receiver - sender) % num_stages
    return hop - num_stages if 2 * hop > num_stages else hop
