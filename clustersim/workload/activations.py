"""What a layer keeps from its forward to its backward pass, tensor by tensor, and what each recompute setting leaves.

For a GPT layer with unfused attention and dropout the sums are those of Korthikanti et al. (2022), with s tokens a
sequence, b sequences, width h, a heads and t tensor-parallel ranks, 16-bit ::

    none                                s·b·h·(10 + 24/t + 5·a·s/(h·t))
    none, sequence parallel             s·b·h/t·(34 + 5·a·s/h)
    selective, sequence parallel        34·s·b·h/t
    full                                2·s·b·h, over t with sequence parallelism

They are not written down anywhere in the code: they follow from the lists of tensors, one beside the block of each
sublayer in :mod:`clustersim.workload.layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clustersim.workload.kept import Kept, kept_nbytes
from clustersim.workload.layers.attention import attention_kept
from clustersim.workload.layers.cross_attention import cross_attention_kept
from clustersim.workload.layers.experts import experts_kept
from clustersim.workload.layers.latent_attention import latent_attention_kept
from clustersim.workload.layers.linear_attention import linear_attention_kept
from clustersim.workload.layers.mamba import mamba_kept
from clustersim.workload.layers.mlp import mlp_kept
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard
from clustersim.workload.sublayer import Sublayer

__all__ = ["kept_by_layer", "kept_tensors"]

_KEPT: Mapping[Sublayer, Callable[[Shard], tuple[Kept, ...]]] = {
    "attention": attention_kept,
    "cross_attention": cross_attention_kept,
    "latent_attention": latent_attention_kept,
    "linear_attention": linear_attention_kept,
    "mamba": mamba_kept,
    "mlp": mlp_kept,
    "experts": experts_kept,
}
"""What each sublayer keeps."""


def kept_tensors(shard: Shard, *, layer: int = 0) -> tuple[Kept, ...]:
    """Every tensor that a layer keeps without recomputation, on one rank.

    Where a recipe quantises, the input of a linear layer is kept as its weight gradient reads it, quantised by column.
    Left out as small: the statistics of the norms (8 bytes a token).

    Parameters
    ----------
    shard : Shard
    layer : int
        which, from 0

    References
    ----------
    NVIDIA Transformer Engine, user guide, handling transposes: what is saved of a quantised layer's input.
    Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models, 2022, section 4.
    """
    model, outside = shard.model, shard.residual_nbytes
    tensors = [Kept("layer input", "input", outside)]
    for number, name in enumerate(model.layer(layer)):
        own = _KEPT[name](shard)
        if number and not model.parallel_residual:
            tensors.append(Kept("residual between the blocks", "norm", outside, part="residual"))
        elif number and model.shared_norm:
            own = tuple(tensor for tensor in own if tensor.part != "norm")
        tensors += own
        if model.post_norms:
            tensors.append(Kept(f"{name} output before its norm", "post norm", outside))
    return tuple(tensor for tensor in tensors if tensor.nbytes)


def kept_by_layer(shard: Shard, recompute: Recomputation) -> int:
    """Bytes that a layer keeps of one micro-batch until its backward pass begins, on one rank.

    Of layers that are computed again in groups, those of the first of a group.
    """
    whole = recompute.group(0, first_layer=0) >= 0
    tensors = kept_tensors(shard)
    return kept_nbytes(t for t in tensors if t.block == "input" or not (whole or t.part in recompute.modules))
