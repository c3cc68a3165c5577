"""The block of a mixture of experts: router, dispatch, the experts of this rank, combine."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.hardware.kernel import Kernel
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.dispatch import back, counts, gather_copies, scatter_copies, there
from clustersim.workload.layers.expert_activations import kept_by_experts
from clustersim.workload.layers.expert_mlp import (
    expert_activation,
    expert_input,
    expert_matrices,
    expert_parameters,
    write_experts,
    write_experts_backward,
)
from clustersim.workload.layers.expert_operators import CLAMPED, clamps, is_clamped_apart
from clustersim.workload.layers.kernels import weight_gradient_nbytes
from clustersim.workload.layers.latent_experts import (
    latent_backward,
    latent_forward,
    latent_matrices,
    latent_parameters,
    latent_weight_gradients,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.router import (
    gathered_back,
    router_backward,
    router_forward,
    router_weight_gradient,
    spread,
)
from clustersim.workload.layers.shared_experts import (
    shared_activation,
    shared_matrices,
    shared_parameters,
    write_shared,
    write_shared_backward,
)
from clustersim.workload.layers.writing import Writing
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = ["experts", "experts_kept"]


def experts(shard: Shard) -> Block:
    """Experts in place of the MLP of one layer.

    Every rank routes the tokens that it holds of the residual stream, so no collective of tensor parallelism stands
    around the block. Copies go to their experts over ``ep``, and over ``etp`` to the ranks that share each expert;
    the results come back the same way. A micro-batch may go in parts, each while experts work on the one before.

    Raises
    ------
    ValueError
        when the model has no experts, or the shard no share of them
    """
    model, (own, share) = shard.model, _own(shard)
    kept = kept_by_experts(shard, own, share)
    router = (model.hidden + own.router_bias) * own.num_experts
    gate = own.shared_gate * model.hidden
    shared = shared_parameters(shard, own)
    latent = latent_parameters(shard, own)
    copies = shard.width * (share.sent + share.received) * model.expert_width
    inside = sum(tensor.nbytes for tensor in kept if tensor.name.startswith("experts ") and tensor.part != "norm")
    return Block(
        kind="experts",
        forward=_forward(shard, own, share),
        until_kept=() if own.latent else _forward(shard, own, share, until_kept=True),
        backward=_backward(shard, own, share),
        parts=(
            *_parts(shard, own, share),
            norm_part(shard, kept),
        ),
        parameters=router + gate + latent + shared,
        replicated_parameters=router + gate + latent,
        expert_parameters=expert_parameters(shard, own, share),
        matrices=tuple(_matrices(shard, own)),
        expert_matrices=tuple(_expert_matrices(shard, own, share)),
        kept=kept_nbytes(kept),
        weight_kept=_weight_kept(shard, own, share),
        forward_workspace=copies,
        backward_workspace=copies + inside,
    )


def experts_kept(shard: Shard) -> tuple[Kept, ...]:
    """What they keep; see :func:`clustersim.workload.layers.expert_activations.kept_by_experts`.

    Raises
    ------
    ValueError
        when the model has no experts, or the shard no share of them
    """
    return kept_by_experts(shard, *_own(shard))


def _own(shard: Shard) -> tuple[Experts, ExpertShard]:
    if shard.model.experts is None or shard.experts is None:
        raise ValueError(f"experts: {shard.experts} must be given, and the model {shard.model.name} have experts")
    return shard.model.experts, shard.experts


def _forward(shard: Shard, experts: Experts, share: ExpertShard, *, until_kept: bool = False) -> tuple[Piece, ...]:
    """All of it, or until the last tensor that is kept: results of experts are not, nor what brings them back.

    Those of latent experts are, summed, since the way out of the latent width reads them.
    """
    writing = Writing("experts")
    away = share.ep > 1
    shared: list[int] = []
    if experts.num_shared and not share.overlap_shared:
        shared.append(write_shared(writing, shard, experts, share, after=()))
    before = tuple(shared)
    copied = () if share.once else (spread(shard, share.sent),)
    inward = latent_forward(shard, experts, 0)
    router = writing.kernels("router forward", *router_forward(shard, experts), *inward, *copied, after=before)
    told = (router,)
    if away and share.dropless:
        told = (writing.collective(counts(shard, experts, share)),)
    parts = list(share.parts())

    def send(n: int) -> int:
        routed = shard.of_module("experts")
        return writing.collective(there(routed, parts[n], "tokens", quantised=share.fp8_dispatch), after=told)

    sent = [send(0)] if away else []
    if experts.num_shared and share.overlap_shared:
        shared.append(write_shared(writing, shard, experts, share, after=(router,)))
    done = []
    for n, part in enumerate(parts):
        if away and n + 1 < len(parts):
            sent.append(send(n + 1))
        arrived = (sent[n],) if away else told
        if share.etp > 1:
            arrived = (writing.collective(gather_copies(shard, part, "tokens"), after=arrived),)
        last = write_experts(writing, shard, experts, part, after=arrived, until_kept=until_kept)
        if until_kept:
            continue
        if share.etp > 1:
            last = writing.collective(scatter_copies(shard, part, "expert outputs"), after=(last,))
        if away:
            last = writing.collective(back(shard, part, "expert outputs"), after=(last,))
        done.append(last)
    if until_kept:
        return writing.pieces()
    outward = latent_forward(shard, experts, 1)
    writing.kernels("experts output forward", gathered_back(shard, share.sent), *outward, after=(*done, *shared))
    return writing.pieces()


def _backward(shard: Shard, experts: Experts, share: ExpertShard) -> tuple[Piece, ...]:
    writing = Writing("experts")
    away = share.ep > 1
    parts = list(share.parts())
    first = writing.kernels("experts output backward", *latent_backward(shard, experts, 1), spread(shard, share.sent))
    shared: list[int] = []

    def send(n: int) -> int:
        return writing.collective(there(shard, parts[n], "output gradients"), after=(first,))

    sent = [send(0)] if away else []
    if experts.num_shared and share.overlap_shared:
        shared.append(write_shared_backward(writing, shard, experts, share, after=(first,)))
    done = []
    for n, part in enumerate(parts):
        if away and n + 1 < len(parts):
            sent.append(send(n + 1))
        arrived = (sent[n],) if away else (first,)
        if share.etp > 1:
            arrived = (writing.collective(gather_copies(shard, part, "output gradients"), after=arrived),)
        last = write_experts_backward(writing, shard, experts, part, after=arrived)
        if share.etp > 1:
            last = writing.collective(scatter_copies(shard, part, "input gradients"), after=(last,))
        if away:
            last = writing.collective(back(shard, part, "input gradients"), after=(last,))
        done.append(last)
    if experts.num_shared and not share.overlap_shared:
        shared.append(write_shared_backward(writing, shard, experts, share, after=tuple(done)))
    summed = (gathered_back(shard, share.sent), *latent_backward(shard, experts, 0))
    writing.kernels("router backward", *summed, *router_backward(shard, experts), after=(*done, *shared))
    weights = (*router_weight_gradient(shard, experts), *latent_weight_gradients(shard, experts))
    writing.kernels("router weight gradient", *weights, weight=True)
    return writing.pieces()


def _parts(shard: Shard, experts: Experts, share: ExpertShard) -> Iterator[Part]:
    """All of it from its input, the inside of the experts, or what their activations write."""
    whole = sum(tensor.nbytes for tensor in kept_by_experts(shard, experts, share) if tensor.part != "norm")
    yield Part(name="moe", op=_forward(shard, experts, share), kept=whole)
    kept = {tensor.name: tensor.nbytes for tensor in kept_by_experts(shard, experts, share)}
    before, after = (kept.get(f"experts {when} their activation", 0) for when in ("before", "after"))

    after += kept.get("experts within their bounds", 0)

    def op(name: str, *kernels: Kernel) -> Compute:
        return Compute(name=f"{name} forward", kind="experts", kernels=kernels)

    def activated(name: str, *kernels: Kernel) -> Compute | tuple[Piece, ...]:
        """The activation behind ``kernels``, and behind its clamps where these are kernels of their own."""
        if not is_clamped_apart(shard, experts):
            return op(name, *kernels, activation)
        apart = op(name, *kernels, *clamps(shard, experts, share))
        return Piece(op=apart), Piece(op=op(CLAMPED, activation), after=(0,))

    activation = expert_activation(shard, experts, share)
    inside = activated("expert products", *expert_input(shard, experts, share))
    yield Part(name="experts", op=inside, kept=before + after, within=("moe",))
    yield Part(name="activation", op=activated("experts activation"), kept=after, within=("moe", "experts"))
    if experts.num_shared:
        nbytes = kept.get("shared experts after their activation", 0)
        op_again = op("shared experts activation", shared_activation(shard, experts, share))
        yield Part(name="activation", op=op_again, kept=nbytes, within=("moe",))


def _matrices(shard: Shard, experts: Experts) -> Iterator[Matrix]:
    """Of the weights that every replica holds; the router is not among those that recipes quantise."""
    yield Matrix(features_in=shard.model.hidden, features_out=experts.num_experts, hidden=False)
    for rows, columns in latent_matrices(shard, experts):
        yield Matrix(features_in=rows, features_out=columns, dtype=shard.of_module("latent").products_as)
    if experts.num_shared:
        (hidden, wide), (ffn, _) = shared_matrices(shard, experts)
        dtype = shard.of_module("shared_experts").products_as
        yield Matrix(features_in=hidden, features_out=ffn, count=wide // ffn, dtype=dtype)
        yield Matrix(features_in=ffn, features_out=hidden, dtype=dtype)


def _expert_matrices(shard: Shard, experts: Experts, share: ExpertShard) -> Iterator[Matrix]:
    """Of the weights of this rank's own experts; gate and up each by itself."""
    (hidden, wide), (ffn, _) = expert_matrices(shard, experts, share)
    dtype = shard.of_module("experts").products_as
    yield Matrix(features_in=hidden, features_out=ffn, count=len(share.tokens) * (wide // ffn), dtype=dtype)
    yield Matrix(features_in=ffn, features_out=hidden, count=len(share.tokens), dtype=dtype)


def _weight_kept(shard: Shard, experts: Experts, share: ExpertShard) -> int:
    matrices = expert_matrices(shard, experts, share)
    nbytes = weight_gradient_nbytes(shard.of_module("experts"), *matrices, tokens=share.received)
    router = (shard.model.hidden, experts.num_experts)
    nbytes += weight_gradient_nbytes(shard.unquantised, router, tokens=shard.rows)
    nbytes += weight_gradient_nbytes(shard.of_module("latent"), *latent_matrices(shard, experts), tokens=shard.rows)
    if experts.num_shared:
        nbytes += weight_gradient_nbytes(shard.of_module("shared_experts"), *shared_matrices(shard, experts))
    return nbytes
