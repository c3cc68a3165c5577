"""What the transformer layers of the first pipeline stage hold, without embedding, head and what only passes through.

Papers on memory count the layers alone. With L layers on p stages of v chunks, the interleaved 1F1B schedule has
L·(1 + (p - 1)/(p·v)) layers in flight on its first stage, 1F1B L (Korthikanti et al., Reducing Activation Recomputation
in Large Transformer Models, 2022, section 4.2.3); neither is written down here: both follow from the schedule's table.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from clustersim.workload.activations import kept_by_layer
from clustersim.workload.case import Case
from clustersim.workload.layers.layer import Layers
from clustersim.workload.ranks import Ranks
from clustersim.workload.recompute import Recomputation
from clustersim.workload.resolve import Resolved, resolve
from clustersim.workload.schedule import units_of
from clustersim.workload.stage_program import weights_of
from clustersim.workload.stage_split import stage_split
from clustersim.workload.stages import Chunk
from clustersim.workload.training_step import shard_of

__all__ = ["layer_activations", "layer_state"]


def layer_activations(case: Case) -> int:
    """Most bytes that layers keep on a rank of the first stage, of all micro-batches in flight.

    Of layers that are alike and computed again one by one, or not at all; a micro-batch is in flight from the start of
    its forward to the end of its backward pass for the input.

    Raises
    ------
    BadInput
        with every fault of the combination
    ValueError
        when the model has experts, whose activations depend on the place of a rank
    """
    resolved = resolve(case)
    plan, shard = resolved.plan, shard_of(case, resolved.plan)
    if case.model.experts is not None:
        raise ValueError(f"experts: {case.model.name} has them, and what their layers keep differs from rank to rank")
    recompute = Recomputation.of(
        plan.recompute,
        modules=plan.recompute_modules,
        method=plan.recompute_method,
        num_layers=plan.recompute_layers,
    )
    chunks = list(_chunks(case, resolved))
    sign = {"F": 1, "B": -1, "I": -1}
    steps = (sign.get(unit.kind, 0) * chunks[unit.chunk].num_layers for unit in units_of(resolved.table()[0]))
    return kept_by_layer(shard, recompute) * max(accumulate(steps))


def layer_state(case: Case) -> int:
    """Bytes of weights, gradients and optimizer state of the layers of a rank of the first stage.

    Raises
    ------
    BadInput
        with every fault of the combination
    ValueError
        when the model has experts
    """
    resolved = resolve(case)
    plan, shard = resolved.plan, shard_of(case, resolved.plan)
    if case.model.experts is not None:
        raise ValueError(f"experts: {case.model.name} has them, and the ranks that hold them differ from the others")
    layers = Layers(shard)
    numbers = [n for c in _chunks(case, resolved) for n in range(c.first_layer, c.first_layer + c.num_layers)]
    blocks = [block for number in numbers for block in layers[number]]
    copies = len(resolved.placement.routes)
    (dense,) = Ranks.of(plan, dp=case.replicas, copies=copies, recipe=shard.recipe, has_experts=False).kinds
    return sum(weights_of(dense, blocks, shard, plan).resident_bytes().values())


def _chunks(case: Case, resolved: Resolved) -> Iterator[Chunk]:
    """Parts of the model on the first stage."""
    placement = resolved.placement
    for number in range(placement.num_virtual):
        route, position = placement.position(0, number)
        yield stage_split(resolved.plan, case.model, len(placement.routes[route]), case.seq_len)[position]
