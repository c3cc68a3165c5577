"""Numbers for the collectives of a lane, one for each op."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.role.flat import Flat
from clustersim.engine.scene.scene import LaneSpec, Scene
from clustersim.engine.scene.signature import Signature

__all__ = ["of_collectives"]


def of_collectives(
    scene: Scene, spec: LaneSpec, flat: Flat, number: Callable[[Signature], int], *, other: int, alone: bool
) -> NDArray[np.int64]:
    """Number the ops of a lane.

    Parameters
    ----------
    scene : Scene
    spec : LaneSpec
    flat : Flat
        the lane's ops
    number : Callable[[Signature], int]
        of a collective
    other : int
        of all other ops
    alone : bool
        whether collectives that wait for other lanes count among the others

    Returns
    -------
    NDArray[int64], shape (ops,)
    """
    numbers = np.full(len(flat), other, dtype=np.int64)
    for slot, ops in zip(flat.slots, flat.slot_ops, strict=True):
        meeting = scene.rendezvous[spec.rendezvous[slot]]
        if not alone or len(meeting.members) == 1:
            by_signature = np.array([number(signature) for signature in meeting.signatures], dtype=np.int64)
            numbers[ops] = np.resize(by_signature[scene.system.blocks[meeting.block].script], len(ops))
    return numbers
