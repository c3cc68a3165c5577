"""The cast of a scene: lanes and rendezvous ready to play, with how long each op takes or how its end is found."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.end_code import COLLECTIVE, ELASTIC, POOLED, SLOWED, STRUNG
from clustersim.engine.find_strands import find_strands
from clustersim.engine.flat import Flat, int32
from clustersim.engine.knot import Knots
from clustersim.engine.lane import Lane
from clustersim.engine.paths import paths
from clustersim.engine.rendezvous import Rendezvous
from clustersim.engine.role import Role
from clustersim.engine.scene import LaneSpec, Scene
from clustersim.engine.signature import Signature
from clustersim.engine.strands import Strands
from clustersim.engine.ties import find_ties
from clustersim.workload.op import Compute, HostWork

__all__ = ["lanes_of", "meetings_of"]


def lanes_of(scene: Scene, rounds: Sequence[int], varying: Collection[int] = ()) -> list[Lane]:
    """The lanes of a scene; equal ops on equal devices share their durations.

    Parameters
    ----------
    rounds : Sequence[int]
        times that each job plays its programs
    varying : Collection[int]
        resources whose capacity may change
    """
    knots, demands, own = Knots(), dict[object, int](), _own(scene, varying)
    cast: dict[tuple[object, ...], tuple[array[int], dict[int, int], Strands]] = {}
    lanes = []
    for spec, mine in zip(scene.lanes, own, strict=True):
        role = scene.system.role(spec.program, rounds[spec.job])
        taken = _sms_taken(scene, spec, role.flat)
        alone = _joint_alone(scene, spec, role)
        if scene.system.noise is not None:
            signatures, kind = _noisy(scene, spec, role), np.arange(len(role.flat))
            ends = _ends(spec, role, signatures, kind, taken, alone, None)
            lanes.append(Lane(spec, role, signatures, int32(kind), *ends, own=mine))
            continue
        code = _code(spec.signatures)
        asked = _asked(scene, spec, role, mine, demands, knots)
        key = (
            *(spec.program, spec.kind, role.rounds, *code, taken.tobytes(), alone.tobytes(), id(spec.crowded)),
            *(asked.number.tobytes(), asked.ns.tobytes(), asked.lane),
        )
        if key not in cast:
            cast[key] = _ends(spec, role, spec.signatures, role.op, taken, alone, asked)
        lanes.append(Lane(spec, role, spec.signatures, role.op_array, *cast[key], own=mine))
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


def _code(signatures: Sequence[Signature | None]) -> list[int]:
    """By signature: how long it takes on its own resources, or how its end is found."""
    return [COLLECTIVE if s is None else ELASTIC if s.ns and s.demands else s.ns for s in signatures]


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


def _ends(
    spec: LaneSpec,
    role: Role,
    signatures: Sequence[Signature | None],
    kind: NDArray[np.int64],
    taken: NDArray[np.float64],
    alone: NDArray[np.int64],
    asked: Asked | None,
) -> tuple[array[int], dict[int, int], Strands]:
    """By op its duration where nothing can change it, else how its end is found; the same for ops behind pools."""
    flat = role.flat
    ns = np.array(_code(signatures), dtype=np.int64)[kind]
    crowded = np.tile(spec.crowded, flat.rounds)
    # where a rank's own memory is never short, ops that use nothing else need not be watched
    own_only = np.array([all(name == "hbm" for name, _ in paths(o)) for o in flat.arrays.ops], dtype=bool)
    duration = np.array([0 if s is None else s.ns for s in signatures], dtype=np.int64)
    easy = (ns == ELASTIC) & own_only[role.op] & ~crowded
    ns[easy] = duration[kind[easy]]
    sm_bound = np.array([s is not None and s.sm_ns > 0 for s in signatures], dtype=bool)[kind]
    joint = (alone >= 0) & ~crowded
    if taken.any():
        slowed = sm_bound & (ns > 0)
        slowed[role.beside.pivot[role.beside.most(taken)[1::2] == 0]] = False
        ns[slowed] = SLOWED
        at_pivot = np.zeros(len(kind), dtype=bool)
        at_pivot[role.beside.pivot] = True
        if (sm_bound & ~at_pivot).any():
            joint &= taken == 0
        else:
            marked = np.zeros(2 * len(role.beside.pivot) + 1, dtype=bool)
            marked[1::2] = sm_bound[role.beside.pivot]
            joint &= (taken == 0) | ~role.beside.meets(marked)
    ns[joint] = alone[joint]
    granted = {k: int(ns[k]) for k in flat.pooled}
    ns[list(granted)] = POOLED
    sm_ns = np.array([0 if s is None else s.sm_ns for s in signatures])[kind]
    strands = _strands(spec, flat, ns, np.where(alone >= 0, alone, duration[kind]), sm_ns, taken, asked)
    return array("q", ns.tobytes()), granted, strands


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What knots of a lane are told by, beside the times of their ops.

    Attributes
    ----------
    number : NDArray[int64], shape (ops,)
        a number for what each op asks of the lane's own resources; -1 where it asks for anything else, or waits for
        other lanes
    ns : NDArray[int64], shape (ops,)
        how long collectives take alone [ns]
    lane : tuple[int, ...]
        SMs of the device, capacities of these resources [B/s]
    knots : Knots
    """

    number: NDArray[np.int64]
    ns: NDArray[np.int64]
    lane: tuple[int, ...]
    knots: Knots


def _strands(
    spec: LaneSpec,
    flat: Flat,
    ns: NDArray[np.int64],
    duration: NDArray[np.int64],
    sm_ns: NDArray[np.int64],
    taken: NDArray[np.float64],
    asked: Asked | None,
) -> Strands:
    """The strands of a lane; in ``ns`` their ops are coded so."""
    single = (ns >= 0) | (ns == SLOWED)
    single[list(flat.giving)] = False
    slowed = ns == SLOWED
    ties = None
    if asked is not None:
        times = np.where(ns >= 0, ns, np.maximum(duration, asked.ns))
        tied = ((ns == ELASTIC) | (ns == COLLECTIVE)) & (asked.number >= 0) & (times > 0)
        tied[list(flat.giving)] = False
        made_of = np.stack([np.minimum(ns, 0), times, sm_ns, taken.astype(np.int64), asked.number], axis=1)
        ties = find_ties(flat, single, tied, single & ~slowed, made_of, asked.lane, asked.knots)
    strands = find_strands(
        flat,
        single,
        np.where(slowed, duration, ns),
        np.where(slowed, sm_ns, 0),
        spec.num_sms,
        ties,
        asked.knots if asked is not None else Knots(),
    )
    ns[strands.on_strands()] = STRUNG
    return strands


def _asked(
    scene: Scene, spec: LaneSpec, role: Role, own: Sequence[int], known: dict[object, int], knots: Knots
) -> Asked:
    place = {resource: k for k, resource in enumerate(own)}

    def number(signature: Signature | None) -> int:
        if signature is None or signature.phases or any(r not in place for r, _, _ in signature.demands):
            return -1
        asks = tuple((place[r], load, weight) for r, load, weight in signature.demands)
        return known.setdefault((asks, signature.peak_load, signature.num_flows), len(known))

    asked = np.array([number(signature) for signature in spec.signatures], dtype=np.int64)[role.op]
    ns = np.zeros(len(role.flat), dtype=np.int64)
    for slot, ops in zip(role.flat.slots, role.flat.slot_ops, strict=True):
        meeting = scene.rendezvous[spec.rendezvous[slot]]
        if len(meeting.members) == 1:
            script = scene.system.blocks[meeting.block].script
            asked[ops] = np.resize(np.array([number(s) for s in meeting.signatures])[script], len(ops))
            ns[ops] = np.resize(np.array([s.ns for s in meeting.signatures])[script], len(ops))
    return Asked(asked, ns, (spec.num_sms, *(scene.capacity[r] for r in own)), knots)


def _joint_alone(scene: Scene, spec: LaneSpec, role: Role) -> NDArray[np.int64]:
    """Duration of the collectives that wait for nobody but this lane and share nothing but its own memory, else -1."""
    alone = np.full(len(role.flat), -1, dtype=np.int64)
    for slot, ops in zip(role.flat.slots, role.flat.slot_ops, strict=True):
        meeting = scene.rendezvous[spec.rendezvous[slot]]
        if len(meeting.members) == 1:
            by_signature = np.array(
                [s.ns if all(r == spec.own_memory for r, _, _ in s.demands) else -1 for s in meeting.signatures]
            )
            alone[ops] = np.resize(by_signature[scene.system.blocks[meeting.block].script], len(ops))
    return alone


def _sms_taken(scene: Scene, spec: LaneSpec, flat: Flat) -> NDArray[np.float64]:
    """SMs that each op of a lane takes from it, shape (ops,)."""
    taken = np.zeros(len(flat))
    for slot, ops in zip(flat.slots, flat.slot_ops, strict=True):
        meeting = scene.rendezvous[spec.rendezvous[slot]]
        by_signature = np.array([s.num_sms for s in meeting.signatures], dtype=np.float64)
        taken[ops] = np.resize(by_signature[scene.system.blocks[meeting.block].script], len(ops))
    return taken


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
