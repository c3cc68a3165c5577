"""Reduction inside the network: switches between nodes that add up what passes (SHARP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustersim.topology.topology import Router

__all__ = ["InNetwork"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class InNetwork:
    """How what the switches add up travels.

    Parameters
    ----------
    router : Router
        as the topology's own, with the reduction engine of each group of switches on the way: ``leaf3/reduce``
    slots : int
        trees that one switch works for at once
    """

    router: Router
    slots: int
