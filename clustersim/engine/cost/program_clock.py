"""The clock at which a GPU runs a program within its power limit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from clustersim.engine.cost.local_cost import LocalCost
from clustersim.hardware.gpu import GPU
from clustersim.workload.arrays import Arrays
from clustersim.workload.op import Compute, Op

__all__ = ["program_clock"]


def program_clock(program: Arrays, gpu: GPU, costs: Mapping[Op, LocalCost]) -> float:
    """Part of its full clock that a GPU keeps throughout a program.

    Power is averaged over the kernels of a step without what it waits: the controller of a board looks at tens of
    milliseconds, which a layer's kernels fill and a pipeline's bubble outlasts. What overlapped communication draws is
    left out.

    Parameters
    ----------
    program : Arrays
    gpu : GPU
        at its full clock
    costs : Mapping[Op, LocalCost]
        of each of the program's blocks of kernels, at that clock, without what makes a single rank slow

    Returns
    -------
    float
        1 where the GPU's power is not known
    """
    if gpu.power is None:
        return 1.0
    counts = np.bincount(program.op, minlength=len(program.ops)).tolist()
    matrix_j = memory_s = scaled_ns = all_ns = 0.0
    for op, times in zip(program.ops, counts, strict=True):
        if not isinstance(op, Compute):
            continue
        for kernel in op.kernels:
            if kernel.kind != "memory":
                seconds = times * kernel.count * kernel.flops / gpu.flop_per_s(kernel.dtype)
                matrix_j += gpu.power.matrix_j(kernel.kind, kernel.dtype, seconds)
            memory_s += times * kernel.count * kernel.nbytes / gpu.memory_bandwidth
        scaled_ns += times * costs[op].sm_ns
        all_ns += times * costs[op].ns
    scaled_s, all_s = scaled_ns / 1e9, all_ns / 1e9
    return gpu.power.clock(matrix_j=matrix_j, memory_s=memory_s, scaled_s=scaled_s, fixed_s=all_s - scaled_s)
