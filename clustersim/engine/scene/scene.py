"""What the event loop plays: lanes, rendezvous and resources, whether folded or not.

A *lane* is one simulated rank and stands for its class; a *rendezvous* is one simulated group. The loop cannot tell
a folded scene from a full one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.scene.signature import Signature
from clustersim.engine.system.system import System

__all__ = ["LaneSpec", "RendezvousSpec", "Scene"]


@dataclass(kw_only=True, slots=True, eq=False)
class LaneSpec:
    """A simulated rank.

    Attributes
    ----------
    job, rank : int
        of the representative; ``rank`` is system-wide
    multiplicity : int
    program : int
    kind : int
    signatures : list[Signature | None]
        by distinct op of the program; None for a collective
    rendezvous : dict[str, int]
        slot -> rendezvous of the scene
    stores : dict[str, tuple[int, int]]
        pool -> (store of the scene, the lane's key in its line)
    num_sms : int
        of its device
    crowded : NDArray[bool], shape (ops of the program,)
        by op, whether it has to be watched for its demand on the rank's own memory
    own_memory : int
        resource of the scene that is this memory, -1 when it is shared or cannot bind
    """

    job: int
    rank: int
    multiplicity: int
    program: int
    kind: int
    signatures: list[Signature | None]
    rendezvous: dict[str, int]
    stores: dict[str, tuple[int, int]]
    num_sms: int
    crowded: NDArray[np.bool_]
    own_memory: int = -1


@dataclass(kw_only=True, slots=True, eq=False)
class RendezvousSpec:
    """A simulated group.

    Attributes
    ----------
    name : str
        axis/family/number
    job : int
    block : int
    group : int
        position in the block
    signatures : list[Signature]
    members : list[tuple[int, str]]
        distinct (lane, slot): the arrivals that a collective waits for
    """

    name: str
    job: int
    block: int
    group: int
    signatures: list[Signature]
    members: list[tuple[int, str]] = field(default_factory=list)


@dataclass(kw_only=True, slots=True, eq=False)
class Scene:
    """All of it.

    Attributes
    ----------
    capacity : list[int]
        of each shared resource [B/s]
    row : list[int]
        its row in the topology's table (the representative's)
    store_capacity : list[int]
        of each pool's store [units]
    lane_of : list of NDArray[int64]
        per job, shape (num_ranks,): lane that stands for each rank
    meeting_of : NDArray[int64], shape (num_groups,)
        rendezvous that stands for each group
    """

    system: System
    lanes: list[LaneSpec]
    rendezvous: list[RendezvousSpec]
    capacity: list[int]
    row: list[int]
    store_capacity: list[int]
    lane_of: list[NDArray[np.int64]]
    meeting_of: NDArray[np.int64]
    folded: bool
