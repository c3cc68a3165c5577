"""What experts do operator by operator around their products: bounds of an activation, and biases of the output."""

from __future__ import annotations

from dataclasses import replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = ["CLAMPED", "clamps", "is_clamped_apart", "output_biases"]

CLAMPED = "experts behind their clamps"
"""What the host issues behind the clamps: it makes a tensor of a number there, the offset of the gate, and waits."""


def is_clamped_apart(shard: Shard, experts: Experts) -> bool:
    """Whether what the activation reads is clamped by kernels of their own."""
    return experts.clamped and "clamp" not in shard.fusion


def clamps(shard: Shard, experts: Experts, share: ExpertShard, *, backward: bool = False) -> tuple[Kernel, ...]:
    """Both halves clamped and put together again; none where the activation's kernel does it.

    Forward each half is read and written, then both once more. Backward the two gradients read the halves beside
    theirs, and are put together.

    References
    ----------
    Megatron-LM, ``megatron/core/fusions/fused_bias_geglu.py``, ``weighted_bias_quick_geglu_impl``: ``chunk``, two
    ``clamp`` and ``cat`` in front of the fused function, and ``torch.tensor`` of the offset on the device.
    """
    if not is_clamped_apart(shard, experts):
        return ()
    half = shard.width * share.received * experts.ffn_hidden // share.etp
    return (_looped((2 * 3 + 4 if backward else 2 * 2 + 4) * half, count=3, dtype=shard.recipe.activations),)


def output_biases(shard: Shard, experts: Experts, share: ExpertShard, *, backward: bool = False) -> tuple[Kernel, ...]:
    """Biases of the experts' outputs times the weights of copies, added in fp32; none without or where fused.

    A weight is fp32, so that with w bytes an element forward the product writes 4, the sum reads w + 4 and writes 4,
    joining the experts' parts reads and writes 4 each, and the cast reads 4 and writes w. Backward the cast reads w and
    writes 4; an expert at a time, the output's gradient is cast back for 4 + w, and those of the bias and of the
    weights are a product of 8 and a sum of 4 each; joining costs 2w.

    References
    ----------
    Megatron-LM, ``megatron/core/transformer/moe/experts.py``, ``TEGroupedMLP._apply_bias``: ``t + b * p`` for each
    expert, ``cat`` and ``to``. The bias of the first product is in cuBLASLt's epilogue.
    """
    if not experts.bias or "expert_bias" in shard.fusion:
        return ()
    w, elements, num_experts = shard.width, share.received * shard.model.expert_width, len(share.tokens)
    if backward:
        return (_looped((32 + 4 * w) * elements, count=5 * num_experts + 2, dtype="fp32"),)
    return (_looped((24 + 2 * w) * elements, count=2 * num_experts + 2, dtype="fp32"),)


def _looped(nbytes: int, *, count: int, dtype: str) -> Kernel:
    """Operators that a loop in Python calls, with equal parts of the bytes."""
    return replace(memory_pass(-(-nbytes // count), dtype=dtype, count=count), looped=count - 1)
