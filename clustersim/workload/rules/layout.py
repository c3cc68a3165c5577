"""How tensors lie in memory, and what is copied for it: where that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.workload.case import Case
from clustersim.workload.precision import find_recipe

__all__ = ["layout_notes"]


def layout_notes(case: Case) -> Iterator[str]:
    """Heads that no other query head reads, matrices that read their input alone, and tokens that nobody gathers."""
    model, plan = case.model, case.plan
    sublayers = model.num_sublayers()
    grouped = max(1, model.num_kv_heads // plan.tp) < model.num_heads // plan.tp
    if plan.repeat_heads and not (grouped and sublayers.get("attention")):
        yield f"plan.repeat_heads: no effect: {model.name} has no attention with fewer key than query heads on a rank"
    several = bool(sublayers.get("attention")) or (model.gated_mlp and bool(sublayers.get("mlp")))
    if plan.split_projections and not several:
        yield f"plan.split_projections: no effect: {model.name} has no attention with keys of its own, and no gate"
    quantisation = find_recipe(case.dtype).quantisation
    if plan.gather_cast and not (case.sequence_parallel and quantisation is not None and quantisation.one_scale):
        yield "plan.gather_cast: no effect without plan.sequence_parallel, tp above 1 and a dtype with a scale a tensor"
    if plan.time_steps and not case.in_time_steps:
        yield "plan.time_steps: no effect without several chunks a stage and the schedule interleaved"
    if plan.batch_first and not case.sequence_parallel:
        yield "plan.batch_first: no effect without plan.sequence_parallel and tp above 1"
