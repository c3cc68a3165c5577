"""What may begin before all updates of a step are through and known to be right."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RunAhead"]


@dataclass(frozen=True, kw_only=True)
class RunAhead:
    """How far passes and updates run ahead of each other.

    Parameters
    ----------
    overlaps_forward : bool
        the next forward pass begins when the first weights are there; else when the update is through
    validates : bool
        of updates that wait for their own gradients alone: when all gradients are there, a pass of the CPU over them,
        which the updates of the next step wait for, says whether they were right to go on
    rolls_back : bool
        of ``validates``: they were not. The CPU takes its updates back, each as long as an update, and does them again
    """

    overlaps_forward: bool = False
    validates: bool = False
    rolls_back: bool = False
