"""DeepSpeed's stage 2 with its optimizer on the CPU, as the code runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from clustersim.workload.offload.casts import Cast
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["Zero2Offload"]


@dataclass(frozen=True, kw_only=True)
class Zero2Offload(OffloadPolicy):
    """ZeRO-Offload without the overlaps of its paper.

    Gradients are cast on the GPU, so that four bytes a parameter leave it. When all have come, one thread goes over the
    rank's whole partition: it multiplies the gradients by their scale, whatever that is, runs Adam, casts the weights
    into a buffer of 16 bits and copies them to the GPU.

    Parameters
    ----------
    subgroup_size : int
        of the partition, which is one subgroup
    blocking : bool
        copies of gradients stand on the stream of the backward pass; with ``overlap_comm`` on that of the reductions
    round_robin : bool
        DeepSpeed's ``round_robin_gradients``, false by default (but for 2021 from May to July). Without it a rank's
        partition is one run of weights, so that ranks copy gradients one after the other
    temporaries : bool
        weights of 16 bits are a temporary tensor, as until 2024. Then they went in fp32 from pinned memory and the GPU
        cast them (``cast_weights = "gpu"``; copies became 6 times as fast, pull request 5301), until a pinned buffer of
        16 bits came in 2025 (pull request 7253)

    References
    ----------
    DeepSpeed, ``runtime/zero/stage_1_and_2.py``: ``async_inplace_copy_grad_to_fp32_buffer_from_gpu``,
    ``reduce_ipg_grads`` (which stream), ``step``, ``unscale_and_clip_grads``. ``runtime/zero/stage2.py`` of 2020, also
    as the paper's first author had it (jren73/DeepSpeed), is the same with temporaries and copies on another stream.
    Pull requests 1067, 1256 and 1261 there: ``round_robin_gradients``.
    PyTorch, ``aten/src/ATen/native/cuda/Copy.cu``: copies between host and GPU convert on the CPU.
    """

    name: ClassVar[str] = "zero-2-offload"

    subgroup_size: int = 2**40
    cast: Cast = "gpu"
    cast_weights: Cast | None = "cpu"
    scales: bool = True
    serial: bool = True
    blocking: bool = True
    round_robin: bool = False
    pinned_states: bool | None = False
    in_turn: bool = True

    def host_nbytes(self, subgroup: Subgroup) -> float:
        """The buffer of 16-bit weights."""
        return 0.0 if self.temporaries else 2.0
