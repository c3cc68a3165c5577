"""Collectives played transfer by transfer: the reference for the rates and times of whole collectives.

The engine takes a collective, or each of its phases that follow one another, as one activity: flows over its whole
length at one even speed. Here each message of its schedule is a flow of its own, so fill times, chunks that queue at a
slow link and unequal parts show. It is slow, and for groups of at most :data:`MAX_MEMBERS`. Rates are in floats and
found by a few lines of their own, so that it agrees with :mod:`clustersim.engine.sharing.filling` for no other reason
than that both are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.steps.schedule import Schedule
from clustersim.engine.messages import Messages
from clustersim.faults import BadInput, Fault
from clustersim.topology.topology import Topology

__all__ = ["MAX_MEMBERS", "MAX_TRANSFERS", "StepwiseCollective", "stepwise"]

MAX_MEMBERS = 32
"""Of one collective; its transfers grow with the square."""

MAX_TRANSFERS = 200_000
"""Of all collectives together: some seconds to a minute."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class StepwiseCollective:
    """One collective to play.

    Parameters
    ----------
    schedule : Schedule
    devices : NDArray[int64], shape (n,)
        of its members, by position in the group
    start : float
        when its last member arrives [s]
    overhead : float
        that a message takes its connection for before its first byte flows [s]
    """

    schedule: Schedule
    devices: NDArray[np.int64]
    start: float = 0.0
    overhead: float = 0.0


def stepwise(topology: Topology, collectives: Sequence[StepwiseCollective]) -> NDArray[np.float64]:
    """Play collectives side by side.

    A transfer starts when those it waits for have arrived and the message before it on its connection (channel, source,
    destination) has left; it takes its connection for the overhead, then its bytes flow at the max-min fair share of
    the resources of its route, all messages alike; it has arrived the latency of the route after its last byte left.
    The first transfers start when the kernel is launched on the slowest member. Only links are played: not HBM, SMs or
    the protocols of a communication library, nor adding up in switches.

    Parameters
    ----------
    topology : Topology
    collectives : Sequence[StepwiseCollective]

    Returns
    -------
    NDArray[float64], shape (num_collectives,)
        when each has ended: the arrival of its last transfer [s]

    Raises
    ------
    BadInput
        when a group has more than ``MAX_MEMBERS`` members, all have more than ``MAX_TRANSFERS`` transfers together, a
        schedule is for another number of members, or two members sit on one device
    """
    _check(collectives)
    return np.array(Messages(topology, collectives).ends()) / 1e9


def _check(collectives: Sequence[StepwiseCollective]) -> None:
    faults = []
    for i, one in enumerate(collectives):
        n, key = len(one.devices), f"collectives[{i}]"
        if n > MAX_MEMBERS:
            rule = f"members are too many to play step by step; at most {MAX_MEMBERS}"
            faults.append(Fault(key=f"{key}.devices", value=n, rule=rule, nearest=MAX_MEMBERS))
        if n != one.schedule.num_members:
            rule = f"devices for a schedule of {one.schedule.num_members} members"
            faults.append(Fault(key=f"{key}.devices", value=n, rule=rule, nearest=one.schedule.num_members))
        if len(np.unique(one.devices)) != n:
            faults.append(Fault(key=f"{key}.devices", value=one.devices.tolist(), rule="must be pairwise different"))
        for name in ("start", "overhead"):
            if not 0 <= getattr(one, name) < float("inf"):
                value = getattr(one, name)
                faults.append(Fault(key=f"{key}.{name}", value=value, rule="must be zero or positive [s]", nearest=0))
    total = sum(len(one.schedule.transfers) for one in collectives)
    if total > MAX_TRANSFERS:
        rule = f"transfers are too many; at most {MAX_TRANSFERS}: fewer slices, members or collectives"
        faults.append(Fault(key="collectives", value=total, rule=rule, nearest=MAX_TRANSFERS))
    if faults:
        raise BadInput(faults)
