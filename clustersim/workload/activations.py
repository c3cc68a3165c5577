"""What a layer keeps from its forward to its backward pass, tensor by tensor, and what each recompute setting leaves.

For a GPT layer with unfused attention and dropout the sums are those of Korthikanti et al. (2022), with s tokens a
sequence, b sequences, width h, a heads and t tensor-parallel ranks, 16-bit ::

    none                                s·b·h·(10 + 24/t + 5·a·s/(h·t))
    none, sequence parallel             s·b·h/t·(34 + 5·a·s/h)
    selective, sequence parallel        34·s·b·h/t
    full                                2·s·b·h, over t with sequence parallelism

They are not written down anywhere in the code: they follow from the list of tensors, which also covers gated MLPs,
grouped-query attention, flash attention and training without dropout.
"""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard

__all__ = ["Kept", "kept_by_block", "kept_by_layer", "kept_tensors"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that the backward pass of a layer needs.

    Parameters
    ----------
    name : str
    block : str
        kind of the block whose backward pass is the last to read it; ``input`` is the layer's own input
    nbytes : int
        [B]
    part : str
        what computes it again by itself, of :data:`clustersim.workload.recompute.MODULES`; empty: only the whole layer
    """

    name: str
    block: str
    nbytes: int
    part: str = ""


def kept_tensors(shard: Shard) -> tuple[Kept, ...]:
    """Every tensor that a layer keeps without recomputation, on one rank.

    With w bytes an element and R = s·b tokens, of which R/t are held outside the two blocks under sequence parallelism.
    The input of a block under sequence parallelism is kept as this rank's part and gathered again. Where a recipe
    quantises, the input of a linear layer is kept as its weight gradient reads it, quantised by column; the output of
    flash attention then twice, since its own backward pass reads it as it was; so too where ranks exchange heads after
    it. Left out as small: the statistics of the norms (8 bytes a token).

    References
    ----------
    NVIDIA Transformer Engine, user guide, handling transposes: what is saved of a quantised layer's input.
    Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022, section 4.
    Dao, FlashAttention-2, 2023, section 3.1 (the log-sum-exp is all that the kernel adds).
    """
    w, tokens = shard.width, shard.tokens
    scores = shard.micro_batch * shard.heads * shard.seq_len**2
    outside = shard.residual_nbytes
    mask = shard.rows * shard.model.hidden * shard.dropout
    operand = shard.recipe.activation_operand.nbytes
    block_input = operand(shard.rows * shard.model.hidden)
    context = tokens * shard.query_features

    tensors = [
        Kept("layer input", "input", outside),
        Kept("attention input", "attention", block_input, part="norm"),
        Kept("queries, keys, values", "attention", w * tokens * shard.qkv_features),
    ]
    if shard.model.qk_norm:
        features = shard.query_features + shard.key_features
        tensors.append(Kept("queries, keys before their norm", "attention", w * tokens * features))
    if shard.attention != "unfused":
        tensors.append(Kept("log-sum-exp", "attention", 4 * tokens * shard.heads, part="core"))
        if shard.recipe.quantisation or shard.context.keeps_twice:
            tensors.append(Kept("attention output of the kernel", "attention", w * context))
    else:
        tensors.append(Kept("probabilities", "attention", w * scores, part="core"))
        tensors.append(Kept("probabilities after dropout", "attention", w * scores * shard.dropout, part="core"))
        tensors.append(Kept("probability mask", "attention", scores * shard.dropout, part="core"))
    tensors += [
        Kept("attention output", "attention", operand(context)),
        Kept("attention mask of dropout", "attention", mask),
        Kept("residual between the blocks", "norm", outside),
        Kept("mlp input", "mlp", block_input, part="norm"),
        Kept("mlp before its activation", "mlp", w * tokens * shard.mlp_in_features),
        Kept("mlp after its activation", "mlp", operand(tokens * shard.ffn), part="activation"),
        Kept("mlp mask of dropout", "mlp", mask),
    ]
    return tuple(t for t in tensors if t.nbytes)


def kept_by_block(shard: Shard, block: str, *, part: str | None = None) -> int:
    """Bytes that one block of a layer keeps when nothing is computed again, or those of one part of it."""
    return sum(t.nbytes for t in kept_tensors(shard) if t.block == block and part in (None, t.part))


def kept_by_layer(shard: Shard, recompute: Recomputation) -> int:
    """Bytes that a layer keeps of one micro-batch until its backward pass begins, on one rank.

    Of layers that are computed again in groups, those of the first of a group.
    """
    whole = recompute.group(0, first_layer=0) >= 0
    tensors = kept_tensors(shard)
    return sum(t.nbytes for t in tensors if t.block == "input" or not (whole or t.part in recompute.modules))
