"""How a plan spreads the layers of a model over virtual stages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from clustersim.workload.model import Model
from clustersim.workload.model_flops import layer_flops, mtp_flops
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.stages import Chunk, split

__all__ = ["least_largest", "stage_split"]


def stage_split(plan: ParallelPlan, model: Model, num_places: int, seq_len: int) -> tuple[Chunk, ...]:
    """The layers of each virtual stage: as listed, or evenly by count or by work.

    Parameters
    ----------
    plan : ParallelPlan
    model : Model
    num_places : int
        virtual stages of one route
    seq_len : int
        tokens of a sequence, which attention's part of the work depends on
    """
    if plan.stage_layers is not None:
        counts: Sequence[int] = plan.stage_layers
    elif plan.split == "flops" and num_places > 1:
        counts = _by_flops(model, num_places, seq_len)
    else:
        return split(model.num_layers, num_places, num_mtp=model.mtp)
    firsts = accumulate(counts, initial=0)
    return tuple(
        Chunk(first_layer=first, num_layers=count, has_embedding=n == 0, has_head=n == num_places - 1)
        for n, (first, count) in enumerate(zip(firsts, counts, strict=False))
    )


@lru_cache(maxsize=16)
def _by_flops(model: Model, num_places: int, seq_len: int) -> tuple[int, ...]:
    """Forward FLOP, to which those of the backward pass are in proportion; the head and its modules on the last."""
    costs = [layer_flops(model, layer, seq_len).total for layer in range(model.num_layers)]
    head = 2 * seq_len * sum(rows * columns for rows, columns in model.outer_matrices.values())
    module = mtp_flops(model, seq_len).total
    return tuple(least_largest(costs, num_places, behind=head + model.mtp * module))


def least_largest(costs: Sequence[int], num_parts: int, *, behind: int) -> list[int]:
    """Cut a row so that the part that costs most costs least; how many each part has.

    Of the cuts that reach it, each is as near as can be to an even share. Only the first and the last part, which have
    the embedding and the head, may be empty.

    Parameters
    ----------
    costs : Sequence[int]
        of each layer, positive
    num_parts : int
        at least 2, at most two more than there are layers
    behind : int
        cost of what the last part has besides
    """
    sums = [0, *accumulate(costs)]
    low, high = max(*costs, behind), sums[-1] + behind
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _latest(sums, num_parts, middle, behind) is not None else (middle + 1, high)
    latest = _latest(sums, num_parts, low, behind)
    if latest is None:
        raise ValueError(f"num_parts: {num_parts} must be at most {len(costs) + 2} for {len(costs)} layers")
    cuts = [len(costs)]
    for part in range(num_parts - 1, 0, -1):
        extra = behind if part == num_parts - 1 else 0
        first = bisect_left(sums, sums[cuts[-1]] - (low - extra))  # the furthest back that this part may begin
        last = min(latest[part], cuts[-1] - (part < num_parts - 1))
        even = bisect_left(sums, part * (sums[-1] + behind) / num_parts)
        cuts.append(min(max(even, first, part - 1), last))
    return [after - before for before, after in pairwise([0, *reversed(cuts)])]


def _latest(sums: Sequence[int], num_parts: int, most: int, behind: int) -> list[int] | None:
    """How far the first parts reach, by their number, when none costs more than ``most``; None: not far enough."""
    num_layers = len(sums) - 1
    reached = [0]
    for part in range(1, num_parts):
        far = bisect_right(sums, sums[reached[-1]] + most) - 1
        reached.append(min(far, num_layers - (num_parts - 1 - part)))
    fits = sums[-1] - sums[reached[-1]] + behind <= most
    return reached if fits else None
