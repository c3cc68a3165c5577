"""The parallel plan: how a training job is spread over ranks, as its user writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from clustersim.units import Unit
from clustersim.workload.activations import Recompute
from clustersim.workload.schedule import Schedule
from clustersim.workload.shard import Attention, Dtype

__all__ = ["ParallelPlan", "ScheduleName"]

ScheduleName = Literal["gpipe", "1f1b", "interleaved"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ParallelPlan:
    """Degrees of parallelism and the choices that go with them.

    A plan alone is not checked: whether it is legal depends on the model, the batch and the number of devices, and
    :func:`clustersim.workload.resolve.resolve` reports all of that at once.

    Parameters
    ----------
    tp, pp : int
        tensor-parallel ranks a layer; pipeline stages
    dp : int, optional
        replicas; derived from the number of devices when None
    cp, ep : int
        context- and expert-parallel ranks; above 1 not yet supported
    vpp : int
        chunks of the model a stage
    zero : int
        0: gradients are summed by all-reduce, every replica holds the optimizer state (DDP);
        1: reduce-scatter, a shard of the state a replica, all-gather of the weights
    schedule : str or callable, optional
        ``gpipe``, ``1f1b``, ``interleaved``, or an own (num_stages, num_virtual, num_micro_batches) -> table;
        None: ``interleaved`` with chunks, else ``1f1b``
    recompute : {"none", "selective", "full"}
        nothing, the attention core, or each layer from its input is computed again in the backward pass
    sequence_parallel : bool, optional
        split norms and residual stream along the sequence; None: with tp > 1
    axis_order : tuple[str, ...]
        axes from the innermost outwards; ranks next to each other on the first are next to each other in number
    bucket_bytes : int, optional
        gradients reduced together [B]; None: 40·10⁶ parameters or 10⁶ a replica, whichever is more (Megatron-LM)
    gradient_dtype : {"fp32", "bf16", "fp16"}
        in which gradients are accumulated and reduced: fp32 or the training dtype
    attention : {"flash", "unfused"}
    dropout : bool
        as GPT-2 and GPT-3 train; later models do not
    overlap_dp : bool
        reduce gradients beside the backward pass, gather weights beside the next forward pass; else in one bucket
        a chunk between the passes
    overlap_tp : bool
        compute weight gradients beside the reduction of the input's gradient
    """

    tp: int = 1
    pp: int = 1
    dp: int | None = None
    cp: int = 1
    ep: int = 1
    vpp: int = 1
    zero: int = 0
    schedule: ScheduleName | Schedule | None = None
    recompute: Recompute = "none"
    sequence_parallel: bool | None = None
    axis_order: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    bucket_bytes: Annotated[int | None, Unit("B")] = None
    gradient_dtype: Dtype = "fp32"
    attention: Attention = "flash"
    dropout: bool = False
    overlap_dp: bool = True
    overlap_tp: bool = True
