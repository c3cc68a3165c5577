"""The clock at which a GPU runs a kernel within its power limit."""

from __future__ import annotations

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Cost, CostModel, Kernel

__all__ = ["within_power"]


def within_power(cost: CostModel) -> CostModel:
    """The same cost model, each kernel at the largest clock at which it is within the GPU's power limit by itself.

    A GPU in a step does not save for its products what other kernels leave of the power: whatever stands between them,
    they run at one rate. By MosaicML's tables of MPT, what attention and passes over memory leave of a step for them is
    628 to 632 TFLOP/s on H100 (13B, 512 to 8,192 tokens) and 220 to 240 on A100 (1B, 512 to 65,536 tokens), where
    attention takes from a twentieth to nine tenths of the step. What communication draws beside them is left out.

    Parameters
    ----------
    cost : CostModel
        of kernels at the clock of the GPU that it is given

    Returns
    -------
    CostModel
        for GPUs at their full clock, where they stay when their power is not known
    """

    def limited(kernel: Kernel, gpu: GPU) -> Cost:
        full = cost(kernel, gpu)
        if gpu.power is None or kernel.kind == "memory":
            return full
        at_peak_s = kernel.count * kernel.flops / gpu.flop_per_s(kernel.dtype)
        scaled_s = full.seconds if full.bound in ("tensor", "vector") else 0.0
        clock = gpu.power.clock(
            matrix_j=gpu.power.matrix_j(kernel.kind, kernel.dtype, at_peak_s, kernel.form),
            memory_s=kernel.count * kernel.nbytes / gpu.memory_bandwidth,
            scaled_s=scaled_s,
            fixed_s=full.seconds - scaled_s,
        )
        return full if clock == 1 else cost(kernel, gpu.at_clock(clock))

    return limited
