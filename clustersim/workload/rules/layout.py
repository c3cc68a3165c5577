"""How tensors lie in memory, and what is copied for it: where that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.workload.case import Case

__all__ = ["layout_notes"]


def layout_notes(case: Case) -> Iterator[str]:
    """Heads that no other query head reads, and tokens that nobody gathers."""
    model, plan = case.model, case.plan
    grouped = max(1, model.num_kv_heads // plan.tp) < model.num_heads // plan.tp
    if plan.repeat_heads and not (grouped and model.num_sublayers().get("attention")):
        yield f"plan.repeat_heads: no effect: {model.name} has no attention with fewer key than query heads on a rank"
    if plan.batch_first and not case.sequence_parallel:
        yield "plan.batch_first: no effect without plan.sequence_parallel and tp above 1"
