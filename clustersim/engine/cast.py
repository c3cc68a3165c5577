"""The cast of a scene: lanes and rendezvous ready to play, with how long each op takes or how its end is found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.flat import Flat
from clustersim.engine.lane import COLLECTIVE, ELASTIC, POOLED, SLOWED, Lane, Rendezvous
from clustersim.engine.local import paths
from clustersim.engine.role import Role
from clustersim.engine.scene import LaneSpec, Scene

__all__ = ["lanes_of", "meetings_of"]


def lanes_of(scene: Scene, steps: Sequence[int]) -> list[Lane]:
    """The lanes of a scene; equal ops on equal devices share their durations.

    Parameters
    ----------
    steps : Sequence[int]
        optimizer steps of each job
    """
    durations: dict[tuple[object, ...], list[int]] = {}
    lanes = []
    for spec in scene.lanes:
        role = scene.system.role(spec.program, steps[spec.job])
        code = [COLLECTIVE if s is None else ELASTIC if s.ns and s.demands else s.ns for s in spec.signatures]
        taken = _sms_taken(scene, spec, role.flat)
        alone = _joint_alone(scene, spec, role)
        key = (spec.program, role.steps, *code, taken.tobytes(), alone.tobytes(), id(spec.crowded))
        if key not in durations:
            durations[key] = _codes(spec, role, np.array(code, dtype=np.int64), taken, alone).tolist()
        lanes.append(Lane(spec, role.flat, durations[key], role.op_list, code))
    return lanes


def _codes(
    spec: LaneSpec, role: Role, code: NDArray[np.int64], taken: NDArray[np.float64], alone: NDArray[np.int64]
) -> NDArray[np.int64]:
    """By op: its duration where nothing can change it, else how its end is found."""
    flat, op = role.flat, role.op
    if not len(op):
        return op
    ns = code[op]
    crowded = np.tile(spec.crowded, flat.steps)
    # where a rank's own memory is never short, ops that use nothing else need not be watched
    own_only = np.array([all(name == "hbm" for name, _ in paths(o)) for o in flat.arrays.ops], dtype=bool)
    duration = np.array([0 if s is None else s.ns for s in spec.signatures], dtype=np.int64)
    easy = (ns == ELASTIC) & own_only[op] & ~crowded
    ns[easy] = duration[op[easy]]
    sm_bound = np.array([s is not None and s.sm_ns > 0 for s in spec.signatures], dtype=bool)[op]
    joint = (alone >= 0) & ~crowded
    if taken.any():
        slowed = sm_bound & (ns > 0)
        slowed[role.beside.pivot[role.beside.most(taken)[1::2] == 0]] = False
        ns[slowed] = SLOWED
        at_pivot = np.zeros(len(op), dtype=bool)
        at_pivot[role.beside.pivot] = True
        if (sm_bound & ~at_pivot).any():
            joint &= taken == 0
        else:
            marked = np.zeros(2 * len(role.beside.pivot) + 1, dtype=bool)
            marked[1::2] = sm_bound[role.beside.pivot]
            joint &= (taken == 0) | ~role.beside.meets(marked)
    ns[joint] = alone[joint]
    ns[list(flat.pooled)] = POOLED
    return ns


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
            rounds = lane.flat.steps
            at = lane.flat.slots.index(slot) if slot in lane.flat.slots else -1
            members.append((lane, lane.flat.slot_ops[at] if at >= 0 else []))
        meetings.append(Rendezvous(spec, np.tile(script, rounds).tolist(), members))
    for lane in lanes:
        lane.rendezvous = [meetings[lane.spec.rendezvous[slot]] for slot in lane.flat.slots]
    return meetings
