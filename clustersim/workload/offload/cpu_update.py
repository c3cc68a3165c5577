"""The update of the CPU: its code, its threads, and what beside it runs in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Adam", "CpuUpdate"]

Adam = Literal["adam", "adam_torch", "adam_tuned"]


@dataclass(frozen=True, kw_only=True)
class CpuUpdate:
    """The CPU's updates.

    Parameters
    ----------
    adam : {"adam", "adam_torch", "adam_tuned"}
        how the CPU's update is written: vectorised (DeepSpeed's CPU-Adam), PyTorch's, or for this very CPU
    update_threads : int, optional
        of the CPU's updates; None: the rank's share of the cores, which is even over the GPUs of the socket, used or
        not
    update_cores : float, optional
        part of the rank's cores that a process of its own has for the CPU's updates, in (0, 1); passes have the others.
        None: both have all
    serial : bool
        one thread does the CPU's update, its casts and the copies of weights in turn; else they are a pipeline
    collects : bool
        new weights are cast and copied, and gradients scaled for nothing, when all updates are through, by another
        thread than that of the updates; else each behind its update
    in_turn : bool
        one thread asks for the updates in their order and waits for each, also those of the GPU; else CPU and GPU work
        beside each other
    """

    adam: Adam = "adam"
    update_threads: int | None = None
    update_cores: float | None = None
    serial: bool = False
    collects: bool = False
    in_turn: bool = False

    @property
    def parts(self) -> tuple[float, float]:
        """Of the rank's cores for the CPU's updates, and for its passes."""
        return (1.0, 1.0) if self.update_cores is None else (self.update_cores, 1 - self.update_cores)
