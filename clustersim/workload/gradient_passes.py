"""Passes over all gradients of a rank before they are reduced, once a step."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, get_args

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass

__all__ = ["GRADIENT_PASSES", "GradientPass", "gradient_passes"]

GradientPass = Literal["average", "check"]
GRADIENT_PASSES = get_args(GradientPass)


def gradient_passes(named: Collection[GradientPass], nbytes: int, *, replicas: int) -> tuple[Kernel, ...]:
    """Kernels of the passes that are named: ``average`` reads and writes the gradients, ``check`` reads them.

    What a rank has is divided by the number of replicas, so that the sum over them is a mean, and searched for what is
    no number. They run over buckets, each just before its reduction; here they stand behind the backward pass, with the
    checks of the update. That the host waits for what each check finds is left out.

    Parameters
    ----------
    named : Collection[GradientPass]
    nbytes : int
        of the gradients before they are split [B]
    replicas : int
        that gradients are averaged over; one has nothing to divide by

    References
    ----------
    Megatron-LM v2.5, ``megatron/model/distributed.py``: ``buffer_.data /= mpu.get_data_parallel_world_size()``.
    Megatron-Core r0.8.0, ``core/distributed/param_and_grad_buffer.py``, ``Bucket.start_grad_sync``.
    """
    moved = [2 * nbytes] if "average" in named and replicas > 1 else []
    moved += [nbytes] if "check" in named else []
    return tuple(memory_pass(each, dtype="fp32") for each in moved)
