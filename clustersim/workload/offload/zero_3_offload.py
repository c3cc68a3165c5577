"""DeepSpeed's ZeRO-3 with its optimizer on the host, as its code does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.place import Place
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["Zero3Offload"]


@dataclass(frozen=True, kw_only=True)
class Zero3Offload(OffloadPolicy):
    """One thread updates subgroup after subgroup; nothing of that overlaps.

    Gradients go through a pinned flat buffer and back, then to the host's fp32 buffer by a blocking ``copy_`` between
    two formats, which PyTorch casts on the CPU: into pageable memory allocated for that copy. New weights come back by
    the same kind of copy. For each subgroup gradients are scaled, Adam runs, weights are cast and copied.

    This is DeepSpeed up to 0.15. Later releases differ by settings: gradients are cast on the GPU since pull requests
    6670 and 6962 (``cast = "gpu"``, with ``cast_weights = "cpu"``), and copied beside the backward pass since 8207
    (``blocking = false``).

    Parameters
    ----------
    weights : {"gpu", "host"}
        where a rank's own 16-bit weights are between their uses; ``host`` is DeepSpeed's ``offload_param``

    References
    ----------
    DeepSpeed 0.13, ``runtime/zero/stage3.py``: ``partition_grads``, ``step``, ``unscale_and_clip_grads``,
    ``_reassign_or_swap_out_partitioned_parameters``; ``runtime/zero/config.py``: ``sub_group_size`` is 1e9.
    PyTorch, ``aten/src/ATen/native/cuda/Copy.cu``, ``copy_kernel_cuda``: a blocking copy converts on the CPU.
    """

    name: ClassVar[str] = "zero-3-offload"

    cast: Cast = "cpu"
    pinned_states: bool | None = False
    powers_of_two: bool = True
    temporaries: bool = True
    flat_buffer: bool = True
    scales: bool = True
    blocking: bool = True
    serial: bool = True
    in_turn: bool = True
    weights: Literal["gpu", "host"] = "gpu"

    def place(self, subgroup: Subgroup) -> Place:
        """States and gradients on the host, weights where they are wanted."""
        return Place(weights=self.weights)
