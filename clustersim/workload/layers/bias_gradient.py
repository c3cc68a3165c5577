"""Gradients of the biases of products."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.shard import Shard

__all__ = ["bias_gradient"]


def bias_gradient(shard: Shard, features: int, *, tokens: int) -> tuple[Kernel, ...]:
    """The sum of a product's output gradient over tokens: a kernel that reads it all, where no product makes it too.

    Parameters
    ----------
    shard : Shard
    features : int
        of the output that have a bias; 0: none
    tokens : int
        on this rank

    References
    ----------
    Megatron-LM, ``megatron/core/tensor_parallel/layers.py``: ``grad_output.sum(dim=0)``; PyTorch, autograd of
    ``linear``. Transformer Engine: cuBLASLt's epilogue ``BGRADB`` in the product of the weight's gradient.
    """
    if not features or "bias" in shard.fusion:
        return ()
    return (memory_pass(shard.width * tokens * features, dtype=shard.recipe.activations),)
