"""The router of a mixture of experts: scores, the choice of experts, and copies of tokens for them."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import linear, linear_input_gradient, linear_weight_gradient, memory_pass
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard

__all__ = ["gathered_back", "router_backward", "router_forward", "router_weight_gradient", "spread"]


def router_forward(shard: Shard, experts: Experts) -> tuple[Kernel, ...]:
    """A product of R × h by h × E; a pass over the scores; the choice of k of E, and the auxiliary loss.

    The scores are read once (w bytes), their probabilities written in fp32 and read again for the choice and for the
    loss; a choice is a number and a weight of 4 bytes each. Left out: the sum over ranks of the experts' counts, which
    the loss needs.

    References
    ----------
    Fedus et al., Switch Transformers, 2021, section 2.2 (load-balancing loss); Megatron-Core, ``moe/router.py``.
    """
    scores = shard.rows * experts.num_experts
    chosen = 8 * shard.rows * experts.top_k
    return (
        *linear(shard.unquantised, *_matrix(shard, experts), tokens=shard.rows),
        memory_pass((shard.width + 4) * scores, dtype="fp32"),
        memory_pass(8 * scores + chosen, dtype="fp32"),
    )


def router_backward(shard: Shard, experts: Experts) -> tuple[Kernel, ...]:
    """Gradients of the scores from those of the weights and of the loss, then of the input, added to the experts'."""
    scores = shard.rows * experts.num_experts
    return (
        memory_pass((8 + shard.width) * scores + 8 * shard.rows * experts.top_k, dtype="fp32"),
        *linear_input_gradient(shard.unquantised, *_matrix(shard, experts), tokens=shard.rows),
        memory_pass(3 * shard.residual_nbytes, dtype=shard.recipe.activations),
    )


def router_weight_gradient(shard: Shard, experts: Experts) -> tuple[Kernel, ...]:
    """The gradient of h × E."""
    return linear_weight_gradient(shard.unquantised, *_matrix(shard, experts), tokens=shard.rows)


def spread(shard: Shard, copies: int) -> Kernel:
    """Tokens of this rank copied in the order of their experts: R read, ``copies`` written."""
    nbytes = shard.width * (shard.rows + copies) * shard.model.expert_width
    return memory_pass(nbytes, dtype=shard.recipe.activations)


def gathered_back(shard: Shard, copies: int) -> Kernel:
    """The sum over each token's copies: as many bytes as :func:`spread`, the other way round."""
    return spread(shard, copies)


def _matrix(shard: Shard, experts: Experts) -> tuple[int, int]:
    return shard.model.hidden, experts.num_experts
