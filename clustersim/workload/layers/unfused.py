"""An attention core of single kernels: both products over the whole square, and a pass for the softmax between them."""

from __future__ import annotations

from dataclasses import replace

from clustersim.hardware.alignment import is_aligned
from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.core import Core
from clustersim.workload.layers.kernels import gemm, memory_pass
from clustersim.workload.unaligned import on_units

__all__ = ["unfused_backward", "unfused_forward"]

_BLOCK = 4
"""Matrices of scores that a block of threads of Megatron-LM's softmax works on, and scores that a thread loads."""


def unfused_forward(core: Core) -> tuple[Kernel, ...]:
    """Scores, softmax, context; the pass reads and writes the scores, and with dropout once more, and a mask.

    Operator by operator the mask is added (2w bytes a score), the softmax written in fp32 (w + 4) and cast (4 + w), and
    dropout is a pass of its own. So it is where the fused kernel does not take the shape: scores are cast (w + 4),
    scaled (8), masked (8), their softmax computed (8) and cast (4 + w). With ALiBi the product adds to the slopes'
    biases, which a pass before has written for each score.

    References
    ----------
    PyTorch, ``aten/src/ATen/native/cuda/Blas.cpp``, ``baddbmm``: what is added is copied into the result first, where
    its factor is not 0. Megatron-DeepSpeed of BigScience, ``megatron/model/transformer.py``: the factor is 0 without
    ALiBi and 1 with it. Megatron-LM, ``megatron/model/fused_softmax.py``, ``is_kernel_available`` and
    ``forward_torch_softmax``.
    """
    length, w = core.shard.seq_len, core.shard.width
    between: tuple[Kernel, ...] = (_pass(core, passes=2),)
    if "softmax" not in core.shard.fusion:
        between = (*_passes(core, 2 * w, w + 4, 4 + w), *_dropout(core))
    elif not _takes(core):
        between = (*_passes(core, w + 4, 8, 8, 8, 4 + w), *_dropout(core))
    scores: tuple[Kernel, ...] = (_product(core, length, core.key_dim),)
    if core.shard.model.positions == "alibi":
        biases = w * core.scores
        written = memory_pass(biases, dtype=core.shard.recipe.activations)
        scores = (written, replace(scores[0], nbytes=scores[0].nbytes + biases))
    return (*scores, *between, _product(core, core.value_dim, length))


def unfused_backward(core: Core) -> tuple[Kernel, ...]:
    """Gradients of probabilities and values, the softmax, gradients of queries and keys; the pass also reads them.

    Operator by operator dropout comes first, then the cast (w + 4) and the softmax (8 + w); where the fused kernel does
    not take the shape, the cast, the softmax (12), the mask (8), the scale (8) and a cast (4 + w).
    """
    length, w = core.shard.seq_len, core.shard.width
    between: tuple[Kernel, ...] = (_pass(core, passes=3),)
    if "softmax" not in core.shard.fusion:
        between = (*_dropout(core), *_passes(core, w + 4, 8 + w))
    elif not _takes(core):
        between = (*_dropout(core), *_passes(core, w + 4, 12, 8, 8, 4 + w))
    return (
        _product(core, length, core.value_dim),
        _product(core, core.value_dim, length),
        *between,
        _product(core, core.key_dim, length),
        _product(core, core.key_dim, length),
    )


def _takes(core: Core) -> bool:
    """Whether the fused softmax has a kernel for this many matrices of scores of this length."""
    shard = core.shard
    return not (shard.micro_batch * core.heads % _BLOCK or shard.seq_len % _BLOCK)


def _product(core: Core, columns: int, inner: int) -> Kernel:
    """Columns and inner side are a head's and the sequence: of queries, keys, values and scores the contiguous ones."""
    shard = core.shard
    product = gemm(
        shard.seq_len,
        columns,
        inner,
        batch=shard.micro_batch * core.heads,
        dtype=shard.recipe.products,
        aligned=is_aligned(columns, inner),
    )
    return on_units(product, shard.unaligned)


def _passes(core: Core, *each: int) -> tuple[Kernel, ...]:
    """By bytes a score; the first also reads the bias."""
    nbytes = [n * core.scores for n in each]
    nbytes[0] += core.bias_nbytes
    return tuple(memory_pass(n, dtype=core.shard.recipe.activations, form="softmax") for n in nbytes)


def _dropout(core: Core) -> tuple[Kernel, ...]:
    shard = core.shard
    nbytes = (2 * shard.width + 1) * core.scores
    return (memory_pass(nbytes, dtype=shard.recipe.activations),) if shard.dropout else ()


def _pass(core: Core, *, passes: int) -> Kernel:
    shard = core.shard
    per_score = passes * shard.width + shard.dropout * (2 * shard.width + 1)
    return memory_pass(per_score * core.scores + core.bias_nbytes, dtype=shard.recipe.activations, form="softmax")
