"""Process groups that run the same collectives in the same way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.cost import GroupCost
from clustersim.collective.traffic import Traffic
from clustersim.workload.script import Signature

__all__ = ["GroupBlock"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class GroupBlock:
    """Groups of one family that run one script and sit alike on their nodes; n groups of m members.

    Attributes
    ----------
    name : str
        axis/family, as the trace names it
    job : int
    number : NDArray[int64], shape (n,)
        position in the family
    first : int
        system-wide number of the block's first group
    members : NDArray[int64], shape (n, m)
        system-wide ranks
    slots : tuple[str, ...]
        slot of each position
    script : NDArray[int32]
        index into ``signatures`` of the group's collectives, in order
    signatures : tuple[Signature, ...]
        (kind, nbytes, algorithm): one of each kind of collective the groups run
    traffic : tuple[Traffic, ...]
    cost : GroupCost
        durations and demands by signature
    reasons : tuple[str, ...]
        why each signature runs as it does
    """

    name: str
    job: int
    number: NDArray[np.int64]
    first: int
    members: NDArray[np.int64]
    slots: tuple[str, ...]
    script: NDArray[np.int32]
    signatures: tuple[Signature, ...]
    traffic: tuple[Traffic, ...]
    cost: GroupCost
    reasons: tuple[str, ...]
