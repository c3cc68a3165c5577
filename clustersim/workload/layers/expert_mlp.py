"""The experts of one rank: an MLP each, over the copies of tokens that they got."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.layers.expert_activations import activation_input_nbytes
from clustersim.workload.layers.expert_operators import CLAMPED, clamps, is_clamped_apart, output_biases
from clustersim.workload.layers.grouped import grouped
from clustersim.workload.layers.kernels import linear, linear_input_gradient, linear_weight_gradient, memory_pass
from clustersim.workload.layers.writing import Writing
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = [
    "activation_pass",
    "expert_activation",
    "expert_input",
    "expert_matrices",
    "expert_parameters",
    "write_experts",
    "write_experts_backward",
]


def expert_matrices(shard: Shard, experts: Experts, share: ExpertShard) -> tuple[tuple[int, int], tuple[int, int]]:
    """(features in, features out) of the two products of an expert on this rank, gate and up fused."""
    ffn, width = experts.ffn_hidden // share.etp, experts.width(shard.model.hidden)
    return (width, (2 if experts.gated else 1) * ffn), (ffn, width)


def expert_parameters(shard: Shard, experts: Experts, share: ExpertShard) -> int:
    """Weights and biases of all experts of this rank; the bias of the output is whole on each."""
    (hidden, wide), (ffn, _) = expert_matrices(shard, experts, share)
    return len(share.tokens) * (hidden * wide + ffn * hidden + experts.bias * (wide + hidden))


def expert_input(shard: Shard, experts: Experts, share: ExpertShard, *, cast: bool = True) -> tuple[Kernel, ...]:
    """The first product of every expert."""
    own = shard.of_module("experts")
    return grouped(linear, own, *expert_matrices(shard, experts, share)[0], share.tokens, cast=cast)


def expert_activation(shard: Shard, experts: Experts, share: ExpertShard, *, backward: bool = False) -> Kernel:
    """The activation, times the weight of each copy: reads gate and up, writes; backward reads three, writes two.

    What it reads is written once more, quantised, where it is kept so.
    """
    (_, wide), (ffn, _) = expert_matrices(shard, experts, share)
    own = shard.of_module("experts")
    return activation_pass(own, share, read=share.received * wide, written=share.received * ffn, backward=backward)


def activation_pass(shard: Shard, share: ExpertShard, *, read: int, written: int, backward: bool) -> Kernel:
    """An activation of ``read`` elements into ``written``; parameters as in :func:`expert_activation`."""
    nbytes = shard.width * (read + written)
    if backward or share.fp8_activation_input:
        nbytes += activation_input_nbytes(shard, share, read)
    return memory_pass(nbytes, dtype=shard.recipe.activations, form="activation")


def write_experts(
    writing: Writing,
    shard: Shard,
    experts: Experts,
    share: ExpertShard,
    *,
    after: tuple[int, ...],
    until_kept: bool = False,
) -> int:
    """Copies in the order of their experts, two products with the activation between them, and back in their order.

    Until the last tensor that is kept, without what only moves results, and without the second product where no bias
    is multiplied behind it.

    Returns
    -------
    int
        number of the piece
    """
    outward, shard = expert_matrices(shard, experts, share)[1], shard.of_module("experts")
    quantised = shard.recipe.quantisation is not None and share.fp8_dispatch
    first = (*_sorted(shard, share), *expert_input(shard, experts, share, cast=not quantised))
    biases = output_biases(shard, experts, share)
    second: tuple[Kernel, ...] = (expert_activation(shard, experts, share),)
    if biases or not until_kept:
        second = (*second, *grouped(linear, shard, *outward, share.tokens), *biases)
    if not until_kept:
        second = (*second, *_sorted(shard, share))
    if not is_clamped_apart(shard, experts):
        return writing.kernels("experts forward", *first, *second, after=after)
    before = writing.kernels("experts forward", *first, *clamps(shard, experts, share), after=after)
    return writing.kernels(f"{CLAMPED} forward", *second, after=(before,))


def write_experts_backward(
    writing: Writing, shard: Shard, experts: Experts, share: ExpertShard, *, after: tuple[int, ...]
) -> int:
    """From the gradients of the copies' results to those of the copies, the weights' where they stand.

    Returns
    -------
    int
        number of the piece that all of it has ended with, gradients of weights included where they are not put off
    """
    (inward, outward), shard = expert_matrices(shard, experts, share), shard.of_module("experts")
    tokens, weights = share.tokens, "experts weight gradient"
    writing.kernels(
        "experts backward",
        *_sorted(shard, share),
        *output_biases(shard, experts, share, backward=True),
        *grouped(linear_input_gradient, shard, *outward, tokens),
        after=after,
    )
    writing.kernels(weights, *grouped(linear_weight_gradient, shard, *outward, tokens), weight=True)
    writing.kernels(
        "experts backward",
        expert_activation(shard, experts, share, backward=True),
        *clamps(shard, experts, share, backward=True),
        *grouped(linear_input_gradient, shard, *inward, tokens),
        *_sorted(shard, share),
    )
    return writing.kernels(weights, *grouped(linear_weight_gradient, shard, *inward, tokens), weight=True)


def _sorted(shard: Shard, share: ExpertShard) -> tuple[Kernel, ...]:
    """Copies from several ranks come by rank and are put in the order of their experts, or are made only here."""
    if len(share.tokens) == 1 or share.ep * share.etp == 1:
        return ()
    return (memory_pass(2 * shard.width * share.received * shard.model.expert_width, dtype=shard.recipe.activations),)
