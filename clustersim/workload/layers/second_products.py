"""Products that selective checkpointing by operator does again: every second one of a layer.

Of a layer's products in the order of their calls, queries, keys, values, output, gate, up, down, the results of the
second, fourth and sixth are not kept. The last one's result is read by no gradient, so it is never done again. Products
of quantised operands are counted alike: the policy sees the call of the product before the operands' own class turns
it into a scaled one, and the memory that torchtitan publishes is the same with and without float8.

References
----------
torchtitan, ``parallelisms/parallelize_llama.py`` of 2024, ``_save_list`` and ``_custom_policy``, and
``benchmarks/llama3_h100_202412_torchtitan.md``, tables 1 and 3. PyTorch, ``torch.utils.checkpoint``: what runs again
stops when the last tensor that is asked for is there.
"""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import linear
from clustersim.workload.shard import Shard

__all__ = ["SECOND", "attention_products", "mlp_products"]

SECOND = "second_products"
"""Their name in :data:`clustersim.workload.recompute.MODULES`."""


def attention_products(shard: Shard) -> tuple[Kernel, ...]:
    """Keys and output, the second and fourth calls of a layer."""
    h = shard.model.hidden
    return (*linear(shard, h, shard.key_features), *linear(shard, shard.query_features, h))


def mlp_products(shard: Shard) -> tuple[Kernel, ...]:
    """What is gated, the sixth call; none without a gate, where the sixth is the last."""
    return linear(shard, shard.model.hidden, shard.ffn) if shard.model.gated_mlp else ()
