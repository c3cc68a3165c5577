"""What the loop needs to know of an op: how long it takes alone, and what it asks of which resource."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["ONE", "WEIGHT_SHIFT", "Demand", "Signature", "weight"]

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
