"""ZeRO-Infinity: optimizer state on drives, and weights where there is room for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.place import Place
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["ZeroInfinity"]


@dataclass(frozen=True, kw_only=True)
class ZeroInfinity(OffloadPolicy):
    """As DeepSpeed runs it: ZeRO-3 with ``offload_optimizer`` on NVMe.

    In the backward pass a gradient goes through stage 3's flat buffer on the host and back, is cast to fp32 on the GPU,
    copied to a pinned buffer, which the thread that issues kernels waits for, and written to the drives from there.
    The update takes one subgroup after the other: its weights, averages and gradient are read while the one before
    is updated, and written while the next one is. One thread scales, updates, casts new weights on the CPU, into
    memory that is not pinned, and copies them.

    Parameters
    ----------
    weights : {"gpu", "host", "nvme"}
        where the 16-bit weights that the passes read live (``offload_param``)
    read_ahead, write_behind : bool
        DeepSpeed's ``pipeline_read`` and ``pipeline_write``
    buffers, gradient_buffers : int
        three subgroups of four buffers each are on their way at a time; DeepSpeed's ``buffer_count``, in buffers of the
        largest subgroup, takes the gradients

    References
    ----------
    Rajbhandari et al., ZeRO-Infinity: Breaking the GPU Memory Wall for Extreme Scale Deep Learning, 2021, sections 5
    and 6. DeepSpeed, ``runtime/zero/stage3.py``, ``partition_grads``, ``step`` and
    ``_reassign_or_swap_out_partitioned_parameters``; ``runtime/swap_tensor/pipelined_optimizer_swapper.py``,
    ``swap_in_optimizer_state`` and ``swap_out_optimizer_state``; ``runtime/swap_tensor/utils.py``,
    ``SwapBuffer.insert_tensor``. PyTorch, ``aten/src/ATen/native/cuda/Copy.cu``: a copy from CPU to GPU that changes
    the format is cast on the CPU first.
    """

    name: ClassVar[str] = "zero-infinity"

    subgroup_size: int = 100_000_000
    weights: Literal["gpu", "host", "nvme"] = "gpu"
    pinned_weights: bool | None = False
    flat_buffer: bool = True
    cast: Cast = "gpu"
    cast_weights: Cast | None = "cpu"
    scales: bool = True
    blocking: bool = True
    serial: bool = True
    buffers: int = 3
    gradient_buffers: int | None = 12

    def place(self, subgroup: Subgroup) -> Place:
        """All that the update needs is on drives."""
        return Place(weights=self.weights, gradients="nvme", states="nvme")
