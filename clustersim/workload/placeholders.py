"""Tensors that stand in for gradients which products add to the gradient buffer themselves.

Autograd wants a gradient for each weight. Where the product of a weight's gradient adds to fp32 buffers that stay, what
it returns is a tensor of the weight's shape and format that nobody reads. Megatron-Core makes one for each product of
its own layers; Transformer Engine, from 2.4 on, keeps one of each shape.

References
----------
Megatron-Core, ``tensor_parallel/layers.py``, backward pass of ``LinearWithGradAccumulationAndAsyncCommunication``: an
empty tensor like ``main_grad`` in the format of the input. Transformer Engine, ``pytorch/module/base.py``,
``get_dummy_wgrad``: a dictionary by shape and format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from clustersim.workload.op import Compute

if TYPE_CHECKING:
    from clustersim.workload.layers.block import Block
    from clustersim.workload.layers.placed import Placed

__all__ = ["Placeholders", "kept_placeholders", "with_passing_placeholders"]

Placeholders = Literal["none", "passing", "kept"]
"""None; one while each product runs; of the layers, one of each shape throughout, and for the head's while it runs."""


def kept_placeholders(blocks: Iterable[Block], width: int) -> int:
    """Bytes that a rank keeps of them throughout, under ``kept``.

    Parameters
    ----------
    blocks : Iterable[Block]
        of the stage
    width : int
        of a weight [B]
    """
    shapes = {shape for block in blocks if block.kind != "head" for shape in _shapes(block)}
    return width * sum(rows * columns for rows, columns in shapes)


def with_passing_placeholders(placed: Sequence[Placed], width: int, setting: Placeholders) -> tuple[Placed, ...]:
    """Blocks whose backward pass also needs room for the largest that does not stay; equal blocks stay one object."""
    known: dict[int, Block] = {}
    for p in placed:
        if id(p.block) not in known:
            passing = setting == "passing" or (setting == "kept" and p.block.kind == "head")
            largest = max((rows * columns for rows, columns in _shapes(p.block)), default=0) if passing else 0
            room = p.block.backward_workspace + width * largest
            known[id(p.block)] = replace(p.block, backward_workspace=room) if largest else p.block
    return tuple(replace(p, block=known[id(p.block)]) for p in placed)


def _shapes(block: Block) -> set[tuple[int, int]]:
    """Rows and columns of the weights whose gradients its products write; of experts, those of each."""
    ops = (piece.op for piece in block.backward if piece.weight)
    kernels = (kernel for op in ops if isinstance(op, Compute) for kernel in op.kernels)
    return {(kernel.m, kernel.n) for kernel in kernels if kernel.kind == "gemm"}
