"""What a device holds beside the ledger: what libraries take, what the allocator rounds, what no allocator knows of.

Three numbers go by the name of peak memory. ``torch.cuda.max_memory_allocated`` counts tensors and the workspaces of
libraries that ask the allocator for them; ``max_memory_reserved`` the segments that the allocator holds for these;
``nvidia-smi`` these and, outside of the allocator, the CUDA context and the buffers of communicators. What
fragmentation adds to the segments depends on the order and sizes of single tensors, which the ledger does not have; it
is left out, so what is reserved is a lower bound.

References
----------
PyTorch, ``aten/src/ATen/cuda/CublasHandlePool.cpp`` (workspace by compute capability) and
``c10/cuda/CUDACachingAllocator.h`` (segments above 10 MiB are whole multiples of 2 MiB). NCCL, ``src/init.cc``
(sizes of buffers by protocol) and ``src/transport`` (a buffer stands with the receiver of each connection).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clustersim.analysis.stage_memory import StageMemory
from clustersim.hardware.gpu import GPU
from clustersim.trace.collectives import CollectiveRecord
from clustersim.trace.record import LaneRecord

__all__ = ["CONTEXT_NBYTES", "DeviceMemory", "device_memory"]

CONTEXT_NBYTES = 512 * 2**20
"""assumed: the CUDA context of a process with the kernels of PyTorch and its libraries loaded; 0.3 to 1 GB."""

_SEGMENT = 2 * 2**20
_WORKSPACE, _WORKSPACE_BEFORE_HOPPER = 32 * 2**20, 2 * 4096 * 1024 + 8 * 16 * 1024
"""Of cuBLAS, one a handle and stream [B]."""

_CONNECTION_NBYTES = (8 * 512 * 8 * 16) + (120 * 640 * 8 * 8) + (1 << 22)
"""NCCL's buffers of a connection, for LL (512 KiB), LL128 (4.7 MiB) and Simple (4 MiB)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceMemory:
    """What the fullest GPU of a stage holds, an estimate.

    Attributes
    ----------
    ledger_bytes : int
        what the programs account for [B]
    workspace_bytes : int
        of cuBLAS, from the allocator [B]
    context_bytes, communicator_bytes : int
        outside of the allocator [B]
    """

    ledger_bytes: int
    workspace_bytes: int
    context_bytes: int
    communicator_bytes: int

    @property
    def allocated_bytes(self) -> int:
        """As ``torch.cuda.max_memory_allocated`` counts [B]."""
        return self.ledger_bytes + self.workspace_bytes

    @property
    def reserved_bytes(self) -> int:
        """The least that ``torch.cuda.max_memory_reserved`` can say [B]."""
        return -(-self.allocated_bytes // _SEGMENT) * _SEGMENT

    @property
    def device_bytes(self) -> int:
        """As ``nvidia-smi`` counts [B]."""
        return self.reserved_bytes + self.context_bytes + self.communicator_bytes


def device_memory(
    stage: StageMemory, lane: LaneRecord, gpu: GPU, collectives: Iterable[CollectiveRecord]
) -> DeviceMemory:
    """Add up what a GPU holds.

    A communicator connects as many channels as its widest collective uses, each to the neighbour before it in a ring;
    trees and pairs, which connect to more when they are first used, are not told apart.

    Parameters
    ----------
    stage : StageMemory
    lane : LaneRecord
        of its rank
    gpu : GPU
    collectives : Iterable[CollectiveRecord]
        of the run
    """
    channels: dict[tuple[str, str], int] = {}
    for one in collectives:
        if one.job == lane.job and one.num_members > 1:
            channels[one.axis, one.family] = max(one.num_channels, channels.get((one.axis, one.family), 0))
    groups = {tuple(name.split("/")[:2]): name for name in lane.groups.values()}
    joined = sum(channels.get((axis, family), 0) for axis, family in groups)
    recent = "fp8" in gpu.tensor_flop_per_s
    return DeviceMemory(
        ledger_bytes=stage.peak_bytes,
        workspace_bytes=_WORKSPACE if recent else _WORKSPACE_BEFORE_HOPPER,
        context_bytes=CONTEXT_NBYTES,
        communicator_bytes=_CONNECTION_NBYTES * joined,
    )
