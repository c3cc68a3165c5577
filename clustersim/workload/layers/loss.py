"""Cross-entropy over the logits: its passes, by the way it is computed."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.shard import Shard

__all__ = ["LOSS", "kept_logits_nbytes", "loss_backward", "loss_forward", "loss_workspace"]

LOSS = ("loss forward", "loss backward")
"""Names of its ops."""

_ROWS_FORWARD, _ROWS_BACKWARD = 12, 6
"""Operators of ``parallel`` on one number a row."""


def loss_forward(shard: Shard) -> tuple[Kernel, ...]:
    """From logits of w bytes to the loss, in bytes an element.

    ``parallel``, over a split vocabulary: cast to fp32 (w + 4), row maximum (4), subtract (8), exponentiate (8), sum
    (4), normalise (8), and 12 operators on one number a row, which find the target's logit. Where a compiler fuses
    ``loss``, what stands between the three reductions is one pass each: subtract, exponentiate and sum (8).
    ``operators``: cast (w + 4), logarithm of the softmax (8). ``fused``: one kernel that reads the logits for their
    statistics and once more (2w). Each logged loss is computed as ``operators``.

    References
    ----------
    Megatron-LM, ``megatron/core/tensor_parallel/cross_entropy.py``, and with ``cross_entropy_loss_fusion``
    ``megatron/core/fusions/fused_cross_entropy.py``; PyTorch, ``log_softmax``; Transformer Engine,
    ``transformer_engine/pytorch/triton/cross_entropy.py``.
    """
    w = shard.width
    passes = {"parallel": (w + 4, 4, 8, 8, 4, 8), "operators": (w + 4, 8), "fused": (2 * w,)}
    if _is_compiled(shard):
        passes["parallel"] = (w + 4, 4, 8, 8)
    logged = _passes(shard, shard.logged_losses * passes["operators"])
    return (*_passes(shard, passes[shard.loss]), *_of_rows(shard, _ROWS_FORWARD), *logged)


def loss_backward(shard: Shard) -> tuple[Kernel, ...]:
    """From what the forward pass has kept to the gradient of the logits, in bytes an element.

    ``parallel``: 6 operators on one number a row subtract the target, the rest is scaled in place (8) and cast (4 + w).
    ``operators``: the loss' gradient, zeros but for the targets (4), the softmax's from its logarithm and that one
    (12), cast (4 + w). ``fused``: read and write the logits' place (2w).
    """
    w = shard.width
    passes = {"parallel": (8, 4 + w), "operators": (4, 12, 4 + w), "fused": (2 * w,)}
    return (*_of_rows(shard, _ROWS_BACKWARD), *_passes(shard, passes[shard.loss]))


def kept_logits_nbytes(shard: Shard) -> int:
    """What is kept of the logits [B]: probabilities or their logarithm in fp32, or fused the logits themselves."""
    return (shard.width if shard.loss == "fused" else 4) * shard.tokens * shard.vocab


def loss_workspace(shard: Shard) -> tuple[int, int]:
    """What is held beside that only while the loss runs, forward and backward [B].

    ``parallel``: the logits, then their gradient; the fp32 buffer is worked on in place. ``operators``: the logits and
    their fp32 copy, then the loss' gradient and the softmax's, both in fp32, before the last is cast; the logits
    themselves are given back in between. ``fused``: all in the logits' place.

    References
    ----------
    PyTorch, ``aten/src/ATen/native/cuda/SoftMax.cu`` and ``NLLLoss2d.cu``: neither gradient is written in place.
    torchtitan, ``train.py``: the logits are deleted before the backward pass.
    """
    w, num_logits = shard.width, shard.tokens * shard.vocab
    forward, backward = {"parallel": (w, w), "operators": (w + 4, 8), "fused": (0, 0)}[shard.loss]
    return forward * num_logits, backward * num_logits


def _is_compiled(shard: Shard) -> bool:
    return shard.loss == "parallel" and "loss" in shard.fusion


def _of_rows(shard: Shard, count: int) -> tuple[Kernel, ...]:
    if shard.loss != "parallel" or _is_compiled(shard):
        return ()
    return (memory_pass(8 * shard.tokens, dtype="fp32", count=count),)


def _passes(shard: Shard, each: tuple[int, ...]) -> tuple[Kernel, ...]:
    return tuple(memory_pass(nbytes * shard.tokens * shard.vocab, dtype="fp32") for nbytes in each)
