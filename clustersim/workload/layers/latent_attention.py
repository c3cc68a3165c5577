"""Multi-head latent attention: narrow vectors a token, from which every rank makes the queries, keys and values it has.

The down projections and their norms are held by every tensor-parallel rank, which does them for the tokens that it has
of the residual stream; heads, and the up projections that make them, are split. So the ranks gather narrow vectors
instead of the residual stream.

References
----------
DeepSeek-AI, DeepSeek-V2, 2024, section 2.1. Megatron-Core, ``transformer/multi_latent_attention.py``: which products
are split, what is gathered, and the recompute module ``mla_up_proj``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from clustersim.hardware.kernel import Kernel
from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.block import Block, Part
from clustersim.workload.layers.context.passes import core_backward, core_forward, core_workspace
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.kernels import (
    dropout_backward,
    linear,
    linear_input_gradient,
    linear_weight_gradient,
    memory_pass,
    weight_gradient_nbytes,
)
from clustersim.workload.layers.norm import norm_part
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.writing import Writing
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Collective, Compute
from clustersim.workload.passes.tensor_parallel import gather, reduction
from clustersim.workload.shape.latent_attention import LatentAttention
from clustersim.workload.shard import Shard

__all__ = ["latent_attention", "latent_attention_kept"]

_KIND = "attention"
_NAME = "latent attention"


def latent_attention(shard: Shard) -> Block:
    """Latent attention of one layer, with keys and values written out for every head as in training.

    Raises
    ------
    ValueError
        when the model has no latent attention
    """
    own = _latent(shard)
    core, kept = own.core, own.kept()
    heads = core.queries_nbytes + core.kv_nbytes
    direct = shard.full_nbytes if own.direct else 0
    across = core_workspace(core)
    return Block(
        kind=_NAME,
        forward=_forward(own),
        backward=_backward(own),
        parts=(
            *_up_parts(own),
            Part(name="core", op=core_forward(core), kept=kept_nbytes(kept, "core")),
            norm_part(shard, kept),
        ),
        parameters=own.parameters,
        replicated_parameters=own.replicated_parameters,
        matrices=own.matrices(),
        reduces=True,
        kept=kept_nbytes(kept),
        weight_kept=weight_gradient_nbytes(shard, *own.split.values(), own.out)
        + weight_gradient_nbytes(shard, *own.whole.values(), tokens=shard.rows),
        forward_workspace=shard.full_nbytes + own.narrow_nbytes + direct + core.scores_nbytes + across[0],
        backward_workspace=shard.full_nbytes
        + 2 * own.narrow_nbytes
        + 2 * direct
        + heads
        + 2 * core.scores_nbytes
        + across[1],
    )


def latent_attention_kept(shard: Shard) -> tuple[Kept, ...]:
    """What it keeps.

    Raises
    ------
    ValueError
        when the model has no latent attention
    """
    return _latent(shard).kept()


def _latent(shard: Shard) -> _Latent:
    if shard.model.latent is None:
        raise ValueError(f"latent: None must be given for latent attention in {shard.model.name}")
    return _Latent(shard=shard, latent=shard.model.latent)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Latent:
    """Shapes of one rank: ``whole`` matrices that every rank has, ``split`` ones that make its heads, ``out``."""

    shard: Shard
    latent: LatentAttention

    @property
    def core(self) -> Core:
        shard, latent = self.shard, self.latent
        return Core(
            shard=shard,
            heads=shard.heads,
            kv_heads=shard.heads,
            key_dim=latent.query_dim,
            value_dim=latent.value_dim,
            masks=shard.masks,
        )

    @property
    def direct(self) -> bool:
        """Queries come from the residual stream at once."""
        return self.latent.q_rank is None

    @property
    def whole(self) -> dict[str, tuple[int, int]]:
        return {name: m for name, m in self._all().items() if name.endswith("_down")}

    @property
    def split(self) -> dict[str, tuple[int, int]]:
        found = {name: m for name, m in self._all().items() if name == "q" or name.endswith("_up")}
        return {name: (rows, columns // self.shard.tp) for name, (rows, columns) in found.items()}

    @property
    def out(self) -> tuple[int, int]:
        return self.core.output_features, self.shard.model.hidden

    @property
    def narrow(self) -> int:
        """Columns that the down projections give."""
        return sum(columns for _, columns in self.whole.values())

    @property
    def narrow_nbytes(self) -> int:
        """They of all tokens [B]: what the ranks gather, and whose gradient they reduce."""
        return self.shard.width * self.shard.tokens * self.narrow

    @property
    def parameters(self) -> int:
        biased = (columns for name, (_, columns) in self.split.items() if name == "q")
        split = sum(rows * columns for rows, columns in (*self.split.values(), self.out))
        return split + self.shard.model.qkv_bias * sum(biased) + self.replicated_parameters

    @property
    def replicated_parameters(self) -> int:
        model = self.shard.model
        whole = sum((rows + model.qkv_bias) * columns for rows, columns in self.whole.values())
        return whole + self.latent.norm_parameters + model.attention_output_bias * model.hidden

    def matrices(self) -> tuple[Matrix, ...]:
        shapes = (*self.whole.values(), *self.split.values(), self.out)
        return tuple(Matrix(features_in=rows, features_out=columns) for rows, columns in shapes)

    def kept(self) -> tuple[Kept, ...]:
        shard, core = self.shard, self.core
        operand, w = shard.recipe.activation_operand.nbytes, shard.width
        return (
            Kept("attention input", _NAME, operand(shard.rows * shard.model.hidden), part="norm"),
            Kept("narrow vectors before their norms", _NAME, w * shard.rows * self.narrow),
            Kept("narrow vectors", _NAME, operand(shard.rows * (self.narrow - self.latent.rope_dim))),
            Kept("queries, keys, values", _NAME, core.queries_nbytes + core.kv_nbytes, part="mla_up"),
            *core.kept(_NAME),
        )

    def norms(self, *, passes: int) -> Kernel:
        """The norms of the narrow vectors; the part that is rotated has none."""
        elements = self.shard.rows * (self.narrow - self.latent.rope_dim)
        return memory_pass(passes * self.shard.width * elements, dtype=self.shard.recipe.activations, form="norm")

    def heads(self) -> Kernel:
        """Rotate queries, and the part of the keys that heads share; write keys from it and from what is their own.

        As many bytes backward, the other way round.
        """
        latent, heads = self.latent, self.shard.heads
        rotated = 2 * heads * latent.rope_dim
        keys = heads * latent.nope_dim + latent.rope_dim + heads * latent.query_dim
        nbytes = self.shard.width * self.shard.tokens * (rotated + keys)
        return memory_pass(nbytes, dtype=self.shard.recipe.activations, form="rope")

    def up(self) -> tuple[Kernel, ...]:
        """From narrow vectors of all tokens to this rank's heads."""
        return (*chain.from_iterable(linear(self.shard, *m) for m in self.split.values()), self.heads())

    def gather_narrow(self, what: str) -> Collective:
        return _collective("all_gather", f"all-gather {what}", self.narrow_nbytes)

    def reduce_narrow(self, what: str) -> Collective:
        if self.shard.sequence_parallel:
            return _collective("reduce_scatter", f"reduce-scatter {what}", self.narrow_nbytes)
        return _collective("all_reduce", f"all-reduce {what}", self.narrow_nbytes)

    def _all(self) -> dict[str, tuple[int, int]]:
        return self.latent.matrices(self.shard.model.hidden, self.shard.model.num_heads)


def _forward(own: _Latent) -> tuple[Piece, ...]:
    shard, writing = own.shard, Writing(_KIND)
    name = f"{_NAME} forward"
    waits: list[int] = []
    if own.direct and shard.sequence_parallel:
        waits.append(writing.collective(gather(shard, f"{_NAME} input"), after=()))
    down = chain.from_iterable(linear(shard, *m, tokens=shard.rows) for m in own.whole.values())
    first = writing.kernels(name, *down, own.norms(passes=2), after=())
    if shard.sequence_parallel:
        waits.append(writing.collective(own.gather_narrow("narrow vectors"), after=(first,)))
    writing.kernels(name, *own.up(), after=tuple(waits) or None)
    writing.part(core_forward(own.core))
    writing.kernels(name, *linear(shard, *own.out))
    return writing.pieces()


def _backward(own: _Latent) -> tuple[Piece, ...]:
    """Gradients of the split matrices wait for their gathered input, and run beside the sum of its gradient."""
    shard, writing = own.shard, Writing(_KIND)
    name, weights = f"{_NAME} backward", f"{_NAME} weight gradient"
    again: list[int] = []
    if shard.sequence_parallel:
        again.append(writing.collective(own.gather_narrow("narrow vectors again"), after=()))
        if own.direct:
            again.append(writing.collective(gather(shard, f"{_NAME} input again"), after=()))
    first = (*dropout_backward(shard), *linear_input_gradient(shard, *own.out))
    writing.kernels(name, *first, after=())
    writing.kernels(weights, *linear_weight_gradient(shard, *own.out), weight=True)
    ups = chain.from_iterable(linear_input_gradient(shard, *m) for m in own.split.values())
    writing.part(core_backward(own.core))
    inputs = writing.kernels(name, own.heads(), *ups)
    summed: list[int] = []
    if shard.tp > 1:
        summed.append(writing.collective(own.reduce_narrow("narrow gradients"), after=(inputs,)))
        if own.direct:
            summed.append(writing.collective(reduction(shard, f"{_NAME} input gradient"), after=(inputs,)))
    split = chain.from_iterable(linear_weight_gradient(shard, *m) for m in own.split.values())
    writing.kernels(weights, *split, after=(inputs, *again), weight=True)
    downs = chain.from_iterable(linear_input_gradient(shard, *m, tokens=shard.rows) for m in own.whole.values())
    both = memory_pass(3 * shard.residual_nbytes, dtype=shard.recipe.activations)  # queries' and keys' gradients
    writing.kernels(name, own.norms(passes=5), *downs, both, after=tuple(summed) or (inputs,))
    whole = chain.from_iterable(linear_weight_gradient(shard, *m, tokens=shard.rows) for m in own.whole.values())
    writing.kernels(weights, *whole, weight=True)
    return writing.pieces()


def _up_parts(own: _Latent) -> tuple[Part, ...]:
    """The up projections, their input gathered again before."""
    kept = kept_nbytes(own.kept(), "mla_up")
    up = Part(name="mla_up", op=_compute("up projections forward", own.up()), kept=kept)
    if not own.shard.sequence_parallel:
        return (up,)
    return (Part(name="mla_up", op=own.gather_narrow("narrow vectors to compute again"), kept=0), up)


def _compute(name: str, kernels: tuple[Kernel, ...]) -> Compute:
    return Compute(name=f"{_NAME} {name}", kind=_KIND, kernels=kernels)


def _collective(kind: str, name: str, nbytes: int) -> Collective:
    return Collective(name=name, kind=kind, slot="tp", nbytes=nbytes, axis="tp")
