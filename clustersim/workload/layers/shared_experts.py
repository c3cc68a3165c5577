"""Shared experts: an MLP that every token meets beside its own experts, split over tensor-parallel ranks."""

from __future__ import annotations

from collections.abc import Callable

from clustersim.hardware.kernel import Kernel
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.layers.expert_mlp import activation_pass
from clustersim.workload.layers.kernels import linear, linear_input_gradient, linear_weight_gradient
from clustersim.workload.layers.writing import Writing
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = ["shared_activation", "shared_matrices", "shared_parameters", "write_shared", "write_shared_backward"]


def shared_matrices(shard: Shard, experts: Experts) -> tuple[tuple[int, int], tuple[int, int]]:
    """(features in, features out) of the two products on this rank, gate and up fused."""
    ffn = experts.shared_ffn_hidden // shard.tp
    return (shard.model.hidden, (2 if experts.gated else 1) * ffn), (ffn, shard.model.hidden)


def shared_parameters(shard: Shard, experts: Experts) -> int:
    """Weights on this rank, without those of the gate, which every tensor-parallel rank holds."""
    inward, outward = shared_matrices(shard, experts)
    return inward[0] * inward[1] + outward[0] * outward[1]


def shared_activation(shard: Shard, experts: Experts, share: ExpertShard, *, backward: bool = False) -> Kernel:
    """Reads gate and up, writes their product; backward reads both and its gradient, writes two."""
    (_, wide), (ffn, _) = shared_matrices(shard, experts)
    own = shard.of_module("shared_experts")
    return activation_pass(own, share, read=shard.tokens * wide, written=shard.tokens * ffn, backward=backward)


def write_shared(
    writing: Writing, shard: Shard, experts: Experts, share: ExpertShard, *, after: tuple[int, ...] | None
) -> int:
    """From the layer's input to its part of the output; under sequence parallelism gathered before, summed after.

    Returns
    -------
    int
        number of the last piece
    """
    (inward, outward), own = shared_matrices(shard, experts), shard.of_module("shared_experts")
    if shard.tp > 1:
        after = (writing.collective(gather(shard, "shared experts input"), after=after),)
    last = writing.kernels(
        "shared experts forward",
        *linear(own, *inward),
        shared_activation(shard, experts, share),
        *linear(own, *outward),
        *_gate(shard, experts, linear),
        after=after,
    )
    return writing.collective(reduction(shard, "shared experts output")) if shard.tp > 1 else last


def write_shared_backward(
    writing: Writing, shard: Shard, experts: Experts, share: ExpertShard, *, after: tuple[int, ...] | None
) -> int:
    """From the output's gradient to that of the input, the weights' beside the sum of the latter.

    Returns
    -------
    int
        number of the piece that gives the input's gradient
    """
    (inward, outward), own = shared_matrices(shard, experts), shard.of_module("shared_experts")
    name, weights = "shared experts backward", "shared experts weight gradient"
    again: tuple[int, ...] | None = None
    if shard.tp > 1:
        before = after
        after = (writing.collective(gather(shard, "shared experts output gradient"), after=before),)
        again = (writing.collective(gather(shard, "shared experts input again"), after=before),)
    writing.kernels(name, *linear_input_gradient(own, *outward), after=after)
    writing.kernels(weights, *linear_weight_gradient(own, *outward), weight=True)
    last = writing.kernels(
        name,
        shared_activation(shard, experts, share, backward=True),
        *linear_input_gradient(own, *inward),
        *_gate(shard, experts, linear_input_gradient),
    )
    inputs = (last,) if again is None else (last, *again)
    if shard.tp > 1:
        last = writing.collective(reduction(shard, "shared experts input gradient"), after=(last,))
    gradients = (*linear_weight_gradient(own, *inward), *_gate(shard, experts, linear_weight_gradient))
    writing.kernels(weights, *gradients, after=inputs, weight=True)
    return last


def _gate(shard: Shard, experts: Experts, product: Callable[..., tuple[Kernel, ...]]) -> tuple[Kernel, ...]:
    """One number a token, by which the output is scaled."""
    return product(shard.unquantised, shard.model.hidden, 1, tokens=shard.rows) if experts.shared_gate else ()
