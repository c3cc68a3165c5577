"""Products that selective checkpointing by operator does again: every second one of a layer.

Of a layer's products in the order of their calls, queries, keys, values, output, gate, up, down, the results of the
second, fourth and sixth are not kept. The last one's result is read by no gradient, so it is never done again. Products
of quantised operands are another operator, which is not among those whose results are kept: all are done again.

References
----------
torchtitan, ``parallelisms/parallelize_llama.py`` of 2024, ``_save_list`` and ``_custom_policy``. PyTorch,
``torch.utils.checkpoint``: what runs again stops when the last tensor that is asked for is there.
"""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import linear
from clustersim.workload.shard import Shard

__all__ = ["SECOND", "attention_products", "is_done_again", "mlp_products"]

SECOND = "second_products"
"""Its name in :data:`clustersim.workload.recompute.MODULES`."""


def is_done_again(shard: Shard, call: int) -> bool:
    """Whether a layer's product is done again, by its place among the calls, from 1."""
    return call % 2 == 0 or shard.recipe.quantisation is not None


def attention_products(shard: Shard) -> tuple[Kernel, ...]:
    """Of queries, keys, values and the output, the first four calls of a layer."""
    h = shard.model.hidden
    shapes = ((h, shard.query_features), (h, shard.key_features), (h, shard.key_features), (shard.query_features, h))
    return tuple(
        kernel for call, shape in enumerate(shapes, 1) if is_done_again(shard, call) for kernel in linear(shard, *shape)
    )


def mlp_products(shard: Shard) -> tuple[Kernel, ...]:
    """Of the gate and of what it gates, calls five and six; without a gate of the first matrix, call five."""
    calls = (5, 6) if shard.model.gated_mlp else (5,)
    shape = (shard.model.hidden, shard.ffn)
    return tuple(kernel for call in calls if is_done_again(shard, call) for kernel in linear(shard, *shape))
