"""Which of a layer's operators share a kernel: a name for each chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

__all__ = ["FUSED", "FUSIONS", "LOSSES", "Loss"]

FUSIONS: Mapping[str, str] = {
    "norm": "the operators of an RMSNorm; a LayerNorm always is one kernel",
    "activation": "a gated activation and its product",
    "residual": "dropout and the residual addition after it",
    "rope": "the operators of rotary embedding",
    "softmax": "mask, softmax and dropout of unfused attention",
    "loss": "what stands between the reductions of cross-entropy over a split vocabulary",
    "gradients": "the product of a weight's gradient and its sum over micro-batches",
    "bias": "the product of a weight's gradient and that of its bias",
    "clamp": "bounds of what the activation of an expert reads, and the activation",
    "expert_bias": "the bias of an expert's output, times the weights of copies, and its sum with the output",
    "residual_norm": "a residual addition and the norm after it; backward, a norm and the sum of two gradients",
}
"""Chain by name -> what is one kernel where it is listed, and one an operator else."""

FUSED = ("norm", "activation", "residual", "rope", "softmax", "loss", "gradients", "bias")
"""What hand-written kernels fuse, as Megatron-LM's and Transformer Engine's; a compiler fuses all of :data:`FUSIONS`.

Layers that have no name here, such as latent attention, are taken to be fused. What gpt-oss adds to experts, clamps and
biases of outputs, Megatron-LM computes operator by operator.
"""

Loss = Literal["parallel", "operators", "fused"]
LOSSES = get_args(Loss)
"""How cross-entropy is computed, see :func:`clustersim.workload.layers.loss.loss_forward`."""
