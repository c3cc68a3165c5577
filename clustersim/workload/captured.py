"""Modules of a layer that are captured as CUDA graphs by themselves, the rest being launched kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from clustersim.workload.layers.dispatch import TOKEN_COUNTS
from clustersim.workload.op import Collective, Compute, Op

__all__ = ["CAPTURED", "Captured", "is_captured"]

Captured = Literal["attn", "mamba", "mlp", "moe_router", "moe_preprocess"]
CAPTURED: tuple[str, ...] = get_args(Captured)
"""Scopes of Megatron-LM's ``cuda_graph_scope``: attention, a Mamba mixer, a dense MLP, the router of a mixture with its
shared experts, and the exchange of how many tokens go where. Experts, dispatch and combine have no scope of their own:
how many tokens they get is known to the host only after the router."""

_OF_KIND: Mapping[str, Captured] = {"attention": "attn", "mamba": "mamba", "mlp": "mlp"}


def is_captured(op: Op, modules: Sequence[str]) -> bool:
    """Whether an op is part of one of some modules.

    Norms and residual sums stand between modules, and go with attention or a mixer.
    """
    if isinstance(op, Compute):
        if op.kind in ("norm", "residual"):
            return "attn" in modules or "mamba" in modules
        if op.kind == "experts":
            return "moe_router" in modules and op.name.startswith(("router", "shared experts"))
        return _OF_KIND.get(op.kind) in modules
    if isinstance(op, Collective):
        if op.name == TOKEN_COUNTS:
            return "moe_preprocess" in modules
        return op.axis in ("tp", "cp") and any(
            module in modules for kind, module in _OF_KIND.items() if kind in op.name
        )
    return False
