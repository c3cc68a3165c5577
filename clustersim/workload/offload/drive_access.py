"""Optimizer states on drives: read before an update, written behind it, one rank at a time where there are locks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.gradient_path import gradient_width
from clustersim.workload.offload.place import DRIVES, Tier
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.pools import BUFFERS, STATES
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.traffic import read
from clustersim.workload.offload.update_phase import UpdatePhase
from clustersim.workload.op import Storage

__all__ = ["STATE", "read_states", "to_read", "write_away"]

STATE = WIDTH["fp32"] * len(STATES)
"""Bytes a parameter of fp32 weights and averages [B]."""


def to_read(phase: UpdatePhase, subgroup: Subgroup, *, warm: bool) -> dict[Tier, int]:
    """Bytes a parameter that an update needs of each kind of drive [B]; ``warm``: its states are on the host."""
    place = phase.policy.place(subgroup)
    found: dict[Tier, int] = {}
    if place.states in DRIVES and not warm:
        found[place.states] = STATE
    if place.gradients in DRIVES:
        found[place.gradients] = found.get(place.gradients, 0) + gradient_width(phase.policy, phase.width)
    return found


def read_states(phase: UpdatePhase, subgroup: Subgroup, loads: Mapping[Tier, int], waits: Sequence[int]) -> list[int]:
    """Read what :func:`to_read` found, into a buffer of the first drive; the ops."""
    numbers = []
    for n, (tier, each) in enumerate(loads.items()):
        op = read(tier, "read optimizer state", each * subgroup.parameters)
        lock = _lock(phase.policy, tier, "read")
        takes = {**({f"{tier} {BUFFERS}": 1} if n == 0 else {}), **lock}
        numbers.append(phase.add(op, waits, takes=takes, gives=lock))
    return numbers


def write_away(
    phase: UpdatePhase, op: Storage, tier: Tier, after: Sequence[int], *, gives: Mapping[str, int] | None = None
) -> int:
    """Write to a drive; the op, which gives back a buffer where there is one to give."""
    lock = _lock(phase.policy, tier, "write")
    return phase.add(op, after, takes=lock, gives={**lock, **(gives or {})})


def _lock(policy: OffloadPolicy, tier: Tier, way: str) -> dict[str, int]:
    return {f"{tier} {way} lock": 1} if policy.lock else {}
