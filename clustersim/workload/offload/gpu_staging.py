"""How states pass through the GPU that are updated there and live elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GpuStaging"]


@dataclass(frozen=True, kw_only=True)
class GpuStaging:
    """What of the states is on the GPU at a time.

    Parameters
    ----------
    staging : int
        subgroups whose state is on the GPU at a time to be updated there
    duplex : bool
        states that come to the GPU and states that leave it pass beside each other; else in turn
    """

    staging: int = 1
    duplex: bool = True
