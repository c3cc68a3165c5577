"""A superchip: a GPU and a CPU joined by a coherent link (Grace–Hopper, Grace–Blackwell)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clustersim.hardware.cpu import CPU
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link

__all__ = ["Superchip"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Superchip:
    """GPUs on one CPU behind NVLink-C2C.

    Parameters
    ----------
    name : str
        card name, ``gh200``
    gpu, cpu : GPU, CPU
        the two kinds of die
    link : Link
        CPU–GPU link of one GPU
    num_gpus : int
        GPUs per CPU: 1 on GH200, 2 on GB200
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    """

    name: str
    gpu: GPU
    cpu: CPU
    link: Link
    num_gpus: int = 1
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.num_gpus < 1:
            raise ValueError(f"num_gpus: {self.num_gpus} must be at least 1")
