"""How gradients leave the GPU, and what is done with them before they are used."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.offload.place import Updater

__all__ = ["GradientFlow"]


@dataclass(frozen=True, kw_only=True)
class GradientFlow:
    """The way of gradients from the backward pass to the update.

    Parameters
    ----------
    each_micro_batch : bool
        gradients leave the GPU with each micro-batch and are added up on the host; else they stay until all are added
    flat_buffer : bool
        gradients of each micro-batch pass through a pinned buffer of their own format on the host: there, and back to
        the GPU, which adds them up and takes their norm in fp64; those of the last go on to their place, unless they
        wait in 16 bits on the host, where they are
    blocking : bool
        the backward pass stands still until a gradient has come to the host
    round_robin : bool
        all ranks copy their parts of the gradients at a time; else each has one run of the weights, so that a bucket is
        one rank's or two, and ranks copy one after the other
    gradient_buffers : int, optional
        of the largest subgroup's gradients in fp32, for those on their way to drives: when all are full, the backward
        pass stands still until all are written; None: as many as it takes
    scales : bool
        gradients are scaled, and clipped, by a pass of its own before the update
    norm : {"gpu", "cpu"}
        who takes the norm of the gradients that are on the host
    """

    each_micro_batch: bool = True
    flat_buffer: bool = False
    blocking: bool = False
    round_robin: bool = True
    gradient_buffers: int | None = None
    scales: bool = False
    norm: Updater = "gpu"
