"""What the experts of a layer keep from their forward to their backward pass, tensor by tensor."""

from __future__ import annotations

from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.kept import Kept
from clustersim.workload.layers.expert_operators import is_clamped_apart
from clustersim.workload.layers.latent_experts import latent_kept
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = ["activation_input_nbytes", "kept_by_experts"]


def activation_input_nbytes(shard: Shard, share: ExpertShard, elements: int) -> int:
    """Bytes of what an activation reads, as it is kept for the backward pass [B]."""
    return shard.recipe.activation_operand.nbytes(elements) if share.fp8_activation_input else shard.width * elements


def kept_by_experts(shard: Shard, experts: Experts, share: ExpertShard) -> tuple[Kept, ...]:
    """Every tensor that is kept without recomputation, on one rank.

    With R tokens routed here, M copies worked on here. The weight of each copy is applied with
    the activation, so that the results of the experts need not be kept; a choice and its weight take 4 bytes each.
    Clamps that are kernels of their own keep what they read, and the activation what they wrote.

    Parameters
    ----------
    shard : Shard
    experts : Experts
        of the model
    share : ExpertShard
        of this rank

    References
    ----------
    Megatron-Core, ``moe/experts.py``: probabilities go into the activation's kernel.
    """
    copies, ffn = share.received, experts.ffn_hidden // share.etp
    read = activation_input_nbytes
    wide = 2 if experts.gated else 1
    routed, common = shard.of_module("experts"), shard.of_module("shared_experts")
    operand, of_shared = (own.recipe.activation_operand.nbytes for own in (routed, common))
    shared = experts.shared_ffn_hidden // shard.tp
    bounded = shard.width * copies * wide * ffn if is_clamped_apart(shard, experts) else 0
    return (
        *latent_kept(shard, experts),
        Kept("experts input", "experts", shard.residual_nbytes, part="norm"),
        Kept("router probabilities", "experts", 4 * shard.rows * experts.num_experts),
        Kept("chosen experts", "experts", 8 * shard.rows * experts.top_k),
        Kept("weights of copies", "experts", 4 * copies),
        Kept("dispatched tokens", "experts", operand(copies * shard.model.expert_width)),
        Kept("experts before their activation", "experts", read(routed, share, copies * wide * ffn), part="experts"),
        Kept("experts within their bounds", "experts", bounded, part="activation"),
        Kept("experts after their activation", "experts", operand(copies * ffn), part="activation"),
        Kept(
            "shared experts before their activation",
            "shared experts",
            read(common, share, shard.tokens * wide * shared),
        ),
        Kept(
            "shared experts after their activation",
            "shared experts",
            of_shared(shard.tokens * shared),
            part="activation",
        ),
    )
