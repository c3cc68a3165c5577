"""Operators that share kernels or do not: where that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.workload.case import Case
from clustersim.workload.fusion import FUSED

__all__ = ["fusion_notes"]


def fusion_notes(case: Case) -> Iterator[str]:
    """Chains of the list that the job does not have, and a list that leaves out no other than these."""
    model, plan = case.model, case.plan
    given, parts = set(plan.fusion), model.num_sublayers()
    has = {
        "norm": model.norm == "rmsnorm" and "residual_norm" not in given,
        "activation": model.gated_mlp and bool(parts.get("mlp")),
        "residual": plan.dropout and "residual_norm" not in given,
        "rope": model.positions == "rope" and bool(parts.get("attention")),
        "softmax": plan.attention == "unfused" and bool(parts.get("attention")),
        "loss": plan.loss == "parallel" and model.head,
        "gradients": True,
        "bias": model.qkv_bias or model.attention_output_bias or model.mlp_bias,
        "clamp": model.experts is not None and model.experts.clamped,
        "expert_bias": model.experts is not None and model.experts.bias,
        "residual_norm": True,
    }
    for name in sorted(given - set(FUSED)):
        if not has[name]:
            yield f"plan.fusion: no effect of {name}: this job has none to fuse"
    left = set(FUSED) - given
    if left and not any(has[name] for name in given ^ set(FUSED)):
        yield f"plan.fusion: no effect: this job has no {' and no '.join(sorted(left))} to fuse"
