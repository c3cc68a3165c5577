"""Modules of a layer that are captured as CUDA graphs by themselves, the rest being launched kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from clustersim.workload.layers.dispatch import TOKEN_COUNTS
from clustersim.workload.op import Collective, Compute, Op

__all__ = ["CAPTURED", "Captured", "is_captured", "module_of"]

Captured = Literal["attn", "mamba", "mlp", "moe_router", "moe_preprocess"]
CAPTURED: tuple[str, ...] = get_args(Captured)
"""Scopes of Megatron-LM's ``cuda_graph_scope``: attention, a Mamba mixer, a dense MLP, the router of a mixture with its
shared experts, and the exchange of how many tokens go where. Experts, dispatch and combine have no scope of their own:
how many tokens they get is known to the host only after the router."""

_OF_KIND: Mapping[str, Captured] = {"attention": "attn", "mamba": "mamba", "mlp": "mlp"}


def module_of(op: Op) -> str | None:
    """The module that an op is a part of; None for norms and residual sums, which stand between modules, and others."""
    if isinstance(op, Compute):
        if op.kind == "experts":
            return "moe_router" if op.name.startswith(("router", "shared experts")) else None
        return _OF_KIND.get(op.kind)
    if isinstance(op, Collective):
        if op.name == TOKEN_COUNTS:
            return "moe_preprocess"
        if op.axis in ("tp", "cp"):
            return next((module for kind, module in _OF_KIND.items() if kind in op.name), None)
    return None


def is_captured(op: Op, modules: Sequence[str]) -> bool:
    """Whether an op is part of one of some modules; norms and residual sums go with attention or a mixer."""
    if isinstance(op, Compute) and op.kind in ("norm", "residual"):
        return "attn" in modules or "mamba" in modules
    return module_of(op) in modules
