"""The cast of a scene: lanes and rendezvous ready to play."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.loop.asked import find_asked
from clustersim.engine.loop.ends import Ends, codes, find_ends
from clustersim.engine.loop.lane import Lane
from clustersim.engine.loop.of_collectives import of_collectives
from clustersim.engine.loop.rendezvous import Rendezvous
from clustersim.engine.role.flat import int32
from clustersim.engine.role.role import Role
from clustersim.engine.scene.scene import LaneSpec, Scene
from clustersim.engine.scene.signature import Signature
from clustersim.engine.strands.knot import Knots
from clustersim.workload.op import Compute, HostWork

__all__ = ["lanes_of", "meetings_of"]


def lanes_of(scene: Scene, rounds: Sequence[int], varying: Collection[int] = ()) -> list[Lane]:
    """The lanes of a scene; equal ops on equal devices share how their ends are found.

    Parameters
    ----------
    rounds : Sequence[int]
        times that each job plays its programs
    varying : Collection[int]
        resources whose capacity may change
    """
    knots, demands, own = Knots(), dict[object, int](), _own(scene, varying)
    known: dict[tuple[object, ...], Ends] = {}
    lanes = []
    for spec, mine in zip(scene.lanes, own, strict=True):
        role = scene.system.role(spec.program, rounds[spec.job])
        taken = of_collectives(scene, spec, role.flat, lambda signature: signature.num_sms, other=0, alone=False)
        alone = _alone(scene, spec, role)
        if scene.system.noise is not None:
            signatures, kind = _noisy(scene, spec, role), np.arange(len(role.flat))
            ends = find_ends(spec, role, signatures, kind, taken, alone, None)
            lanes.append(Lane(spec, role, signatures, int32(kind), ends, own=mine))
            continue
        asked = find_asked(scene, spec, role, mine, demands, knots)
        key = (
            *(spec.program, spec.kind, role.rounds, *codes(spec.signatures)),
            *(taken.tobytes(), alone.tobytes(), id(spec.crowded)),
            *(asked.number.tobytes(), asked.ns.tobytes(), asked.lane),
        )
        if key not in known:
            known[key] = find_ends(spec, role, spec.signatures, role.op, taken, alone, asked)
        lanes.append(Lane(spec, role, spec.signatures, role.op_array, known[key], own=mine))
    return lanes


def _own(scene: Scene, varying: Collection[int]) -> list[tuple[int, ...]]:
    """By lane the resources of fixed capacity that only itself uses, and collectives that it takes part in."""
    users: dict[int, set[int]] = {}
    for number, spec in enumerate(scene.lanes):
        for resource in {r for signature in spec.signatures if signature for r, _, _ in signature.demands}:
            users.setdefault(resource, {number}).intersection_update({number})
    for meeting in scene.rendezvous:
        members = {number for number, _ in meeting.members}
        for resource in {r for signature in meeting.signatures for r, _, _ in signature.demands}:
            users.setdefault(resource, set(members)).intersection_update(members)
    own: list[list[int]] = [[] for _ in scene.lanes]
    for resource in sorted(users.keys() - set(varying)):
        for number in users[resource]:
            own[number].append(resource)
    return [tuple(resources) for resources in own]


def _alone(scene: Scene, spec: LaneSpec, role: Role) -> NDArray[np.int64]:
    """Duration of the collectives that wait for nobody but this lane and share nothing but its own memory, else -1."""

    def duration(signature: Signature) -> int:
        return signature.ns if all(r == spec.own_memory for r, _, _ in signature.demands) else -1

    return of_collectives(scene, spec, role.flat, duration, other=-1, alone=True)


def _noisy(scene: Scene, spec: LaneSpec, role: Role) -> list[Signature | None]:
    """A signature for each op of a lane, what it computes drawn out or in by its own random factor."""
    rank = spec.rank - int(scene.system.first_rank[spec.job])
    assert scene.system.noise is not None
    factors = scene.system.noise.factors(spec.job, rank, role.step, role.place)
    computes = [isinstance(op, Compute | HostWork) for op in role.arrays.ops]
    signatures: list[Signature | None] = []
    for k, factor in zip(role.op_array, factors.tolist(), strict=True):
        signature = spec.signatures[k]
        if signature is not None and signature.ns and computes[k]:
            ns = max(1, round(signature.ns * factor))
            sm_ns = round(signature.sm_ns * factor)
            signature = replace(signature, ns=ns, sm_ns=sm_ns, timings={})
        signatures.append(signature)
    return signatures


def meetings_of(scene: Scene, lanes: list[Lane]) -> list[Rendezvous]:
    """The rendezvous of a scene, joined to its lanes."""
    meetings = []
    for spec in scene.rendezvous:
        script = scene.system.blocks[spec.block].script
        members, rounds = [], 1
        for number, slot in spec.members:
            lane = lanes[number]
            rounds = lane.flat.rounds
            at = lane.flat.slots.index(slot) if slot in lane.flat.slots else -1
            members.append((lane, lane.flat.slot_ops[at] if at >= 0 else array("i")))
        meetings.append(Rendezvous(spec, int32(np.tile(script, rounds)), members))
    for lane in lanes:
        lane.rendezvous = [meetings[lane.spec.rendezvous[slot]] for slot in lane.flat.slots]
    return meetings
