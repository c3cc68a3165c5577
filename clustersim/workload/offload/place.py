"""Where a subgroup lives between steps, and who updates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["DRIVES", "Drive", "Place", "Tier", "Updater"]

Tier = Literal["gpu", "host", "nvme", "file_system"]
Drive = Literal["nvme", "file_system"]
DRIVES: tuple[Drive, ...] = get_args(Drive)
Updater = Literal["cpu", "gpu"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a subgroup lives between steps.

    Parameters
    ----------
    weights, gradients, states : {"gpu", "host", "nvme", "file_system"}
        of the weights that the passes read; of gradients from the backward pass to the update; of the fp32 weights and
        the optimizer's averages
    """

    weights: Tier = "gpu"
    gradients: Tier = "host"
    states: Tier = "host"
