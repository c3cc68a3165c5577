"""An attention core of single kernels: both products over the whole square, and a pass for the softmax between them."""

from __future__ import annotations

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.kernels import gemm, memory_pass

__all__ = ["unfused_backward", "unfused_forward"]


def unfused_forward(core: Core) -> tuple[Kernel, ...]:
    """Scores, softmax, context; the pass reads and writes the scores, and with dropout once more, and a mask."""
    length = core.shard.seq_len
    return (_product(core, length, core.key_dim), _pass(core, passes=2), _product(core, core.value_dim, length))


def unfused_backward(core: Core) -> tuple[Kernel, ...]:
    """Gradients of probabilities and values, the softmax, gradients of queries and keys; the pass also reads them."""
    length = core.shard.seq_len
    return (
        _product(core, length, core.value_dim),
        _product(core, core.value_dim, length),
        _pass(core, passes=3),
        _product(core, core.key_dim, length),
        _product(core, core.key_dim, length),
    )


def _product(core: Core, columns: int, inner: int) -> Kernel:
    shard = core.shard
    return gemm(shard.seq_len, columns, inner, batch=shard.micro_batch * core.heads, dtype=shard.recipe.products)


def _pass(core: Core, *, passes: int) -> Kernel:
    shard = core.shard
    per_score = passes * shard.width + shard.dropout * (2 * shard.width + 1)
    return memory_pass(per_score * core.scores + core.bias_nbytes, dtype=shard.recipe.activations, form="softmax")
