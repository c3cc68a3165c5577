"""Routing: how many tokens go from which rank to which experts, and how they get there."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from clustersim.workload.exchange import Dispatch, Exchange
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.experts import Experts
from clustersim.workload.token_load import TokenLoad, token_load

__all__ = ["DISPATCHES", "expert_shards"]

DISPATCHES: Mapping[Dispatch, str] = {
    "all_to_all": "one message for each pair of ranks, a token once for each of its experts",
    "hierarchical": "the same tokens, first gathered inside a node, then sent between nodes",
    "deepep": "a token once to each node and there once to each rank that has one of its experts",
    "hybridep": "the same way, after every rank has been told the experts of all ranks' tokens",
}
"""Ways in which tokens are sent to experts."""

_ONCE = ("deepep", "hybridep")
"""Ways that send a token once to where several of its experts are."""


def expert_shards(experts: Experts, plan: ParallelPlan, *, rows: int) -> tuple[ExpertShard, ...]:
    """Shares of the ep ranks of a legal plan: one if all are equal, else one for each.

    Equally popular experts work on equally many tokens, rounded up. With a capacity factor c every rank sends
    C = ⌈c·R·k/E⌉ copies to each of E experts, whatever their popularity: what is more is dropped, what is less padded.
    With one rank for all experts nothing is sent, and how has no effect.

    Parameters
    ----------
    experts : Experts
    plan : ParallelPlan
    rows : int
        tokens R of a micro-batch that a rank routes, k experts for each

    References
    ----------
    Lepikhin et al., GShard, 2020, section 2.2 (expert capacity); Megatron-Core, ``moe/moe_utils.py``, get_capacity,
    with ``--moe-pad-expert-input-to-capacity``.
    """
    ep, etp, local = plan.ep, plan.etp or 1, experts.num_experts // plan.ep
    away = ep > 1
    load = _load(experts, plan)
    there = _there(experts, plan, load, rows)
    capacity = None
    if plan.capacity_factor is not None:
        capacity = math.ceil(plan.capacity_factor * rows * experts.top_k / experts.num_experts)
    found = []
    for index in range(1 if load is None or capacity is not None else ep):
        if capacity is not None:
            tokens: tuple[int, ...] = (etp * ep * capacity,) * local
        elif load is None:
            tokens = (math.ceil(etp * ep * rows * experts.top_k / experts.num_experts),) * local
        else:
            mine = load.counts(rows)[:, index * local : (index + 1) * local].sum(axis=0)
            tokens = tuple((etp * mine).tolist())
        found.append(
            ExpertShard(
                ep=ep,
                etp=etp,
                index=index,
                tokens=tokens,
                sent=rows * experts.top_k if capacity is None else capacity * experts.num_experts,
                dropless=capacity is None,
                gathers_maps=away and plan.dispatch == "hybridep",
                there=there,
                back=there.turned() if isinstance(there, Exchange) else there,
                once=away and plan.dispatch in _ONCE,
                chunks=plan.overlap_dispatch if away else 1,
                overlap_shared=away and plan.overlap_shared,
                fp8_dispatch=away and plan.fp8_dispatch,
                fp8_activation_input=plan.fp8_activation_input,
            )
        )
    return tuple(found)


def _load(experts: Experts, plan: ParallelPlan) -> TokenLoad | None:
    return token_load(
        plan.token_imbalance,
        num_experts=experts.num_experts,
        top_k=experts.top_k,
        ep=plan.ep,
        seed=plan.token_seed,
    )


def _there(experts: Experts, plan: ParallelPlan, load: TokenLoad | None, rows: int) -> str | Exchange | None:
    if plan.dispatch in _ONCE:
        return Exchange(experts=experts)
    if plan.dispatch == "hierarchical":
        return "hierarchical"
    if load is None or plan.capacity_factor is not None:
        return None
    sent = load.counts(rows).reshape(plan.ep, plan.ep, -1).sum(axis=2)
    return Exchange(share=(sent / np.maximum(sent.sum(axis=1, keepdims=True), 1)).tolist())
