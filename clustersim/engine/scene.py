"""What the event loop plays: lanes, rendezvous and resources, whether folded or not.

A *lane* is one simulated rank and stands for its class; a *rendezvous* is one simulated group. The loop cannot tell
a folded scene from a full one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.system import System

__all__ = ["ONE", "Demand", "LaneSpec", "RendezvousSpec", "Scene", "Signature", "joint_signature", "weight"]

ONE = 1 << 96
"""All the work of an op. Work left and rates are whole multiples of 1/ONE, so that sums do not depend on their order;
with 96 bits an op of up to 2^48 ns alone ends on its exact nanosecond."""

WEIGHT_SHIFT = 80
"""Weights of the max-min allocation are whole multiples of 2^-80: what rounding them up adds to a resource's load stays
below its 2^-40 of head-room even where an op puts 2^-40 of its bytes, so ops that fit are never slowed."""

Demand = tuple[int, int, int]
"""(resource of the scene, load, weight): what all ops that the activity stands for put on one such resource."""


def weight(load: int, num_flows: int, peak_load: int) -> int:
    """Load on a resource for each unit of the activity's level, in units of 2^-80, rounded up.

    With x = p · ``peak_load`` the rate on the activity's busiest resource and x / ``num_flows`` its level, a level λ
    puts λ · num_flows · load / peak_load on the resource.
    """
    return -((-load * num_flows << WEIGHT_SHIFT) // peak_load)


@dataclass(kw_only=True, slots=True, eq=False)
class Signature:
    """One kind of collective of a rendezvous, or one distinct op of a lane, as the loop needs it.

    Attributes
    ----------
    ns : int
        duration alone [ns]
    sm_ns : int
        the part that grows as SMs are taken, times the device's crowding [ns]; 0 for a collective
    demands : tuple[Demand, ...]
        on resources that can bind
    peak_load : int
        of the single op on its busiest resource [B]
    num_flows : int
    num_sms : int
        SMs it takes from each member while it runs
    bound : str
        what sets ``ns``
    phases : tuple[Signature, ...]
        of a collective whose phases follow one another: each by itself; ``ns`` and ``demands`` are their sums. Empty
        for what is one phase
    phase : int
        number of a phase in its collective
    then : Signature or None
        the next phase
    """

    ns: int
    sm_ns: int = 0
    demands: tuple[Demand, ...] = ()
    peak_load: int = 1
    num_flows: int = 1
    num_sms: int = 0
    bound: str = ""
    phases: tuple[Signature, ...] = ()
    phase: int = 0
    then: Signature | None = field(default=None, repr=False)
    timings: dict[int, tuple[int, int]] = field(default_factory=dict, repr=False)

    def beside(self, taken: int, num_sms: int) -> tuple[int, int]:
        """(duration [ns], speed) alone on its resources while collectives hold ``taken`` of the device's SMs.

        It lasts taken / (num_sms - taken) of its SM-bound part longer. The speed is ONE / duration, rounded up so that
        the op ends on its nanosecond.
        """
        timing = self.timings.get(taken)
        if timing is None:
            free = max(1, num_sms - taken)
            work = self.ns * free + self.sm_ns * (num_sms - free) if taken else self.ns * free  # ns · free
            timing = self.timings[taken] = -(-work // free), -(-ONE * free // work) if work else 0
        return timing


def joint_signature(system: System, b: int, g: int, s: int, demands: Sequence[Sequence[Demand]]) -> Signature:
    """Signature of a collective.

    Parameters
    ----------
    b, g, s : int
        block, group of the block, signature of the group
    demands : Sequence[Sequence[Demand]]
        of each of its phases
    """
    block = system.blocks[b]
    what, cost = block.traffic[s], block.cost.by_phase
    mine = cost.phases.of_signature(s)
    bound = system.group_bound(b, g, s)
    phases = [
        Signature(
            ns=ns,
            demands=tuple(of_phase),
            peak_load=max(1, peak),
            num_flows=what.num_flows,
            num_sms=what.num_sms,
            bound=bound,
            phase=number,
        )
        for number, (ns, peak, of_phase) in enumerate(
            zip(cost.ns[g, mine].tolist(), cost.peak_load[g, mine].tolist(), demands, strict=True)
        )
    ]
    if len(phases) == 1:
        return phases[0]
    for phase, then in pairwise(phases):
        phase.then = then
    total: dict[int, tuple[int, int]] = {}
    for r, load, w in (demand for of_phase in demands for demand in of_phase):
        total[r] = total.get(r, (0, 0))[0] + load, total.get(r, (0, 0))[1] + w
    return Signature(
        ns=sum(phase.ns for phase in phases),
        demands=tuple((r, load, w) for r, (load, w) in total.items()),
        num_sms=what.num_sms,
        bound=bound,
        phases=tuple(phases),
    )


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
