"""What the ops of a lane ask of resources that no other lane uses: what knots are told by, beside times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.loop.of_collectives import of_collectives
from clustersim.engine.role.role import Role
from clustersim.engine.scene.scene import LaneSpec, Scene
from clustersim.engine.scene.signature import Signature
from clustersim.engine.strands.knot import Knots

__all__ = ["Asked", "find_asked"]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What the ops of a lane ask of its own resources.

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


def find_asked(
    scene: Scene, spec: LaneSpec, role: Role, own: Sequence[int], known: dict[object, int], knots: Knots
) -> Asked:
    """What a lane's ops ask of its own resources.

    Parameters
    ----------
    own : Sequence[int]
        resources of the scene that are the lane's own
    known : dict[object, int]
        numbers given so far in the scene; takes new ones
    knots : Knots
        of the scene
    """
    place = {resource: k for k, resource in enumerate(own)}

    def number(signature: Signature | None) -> int:
        if signature is None or signature.phases or any(r not in place for r, _, _ in signature.demands):
            return -1
        asks = tuple((place[r], load, weight) for r, load, weight in signature.demands)
        return known.setdefault((asks, signature.peak_load, signature.num_flows), len(known))

    of_own = np.array([number(signature) for signature in spec.signatures], dtype=np.int64)[role.op]
    return Asked(
        number=np.maximum(of_own, of_collectives(scene, spec, role.flat, number, other=-1, alone=True)),
        ns=of_collectives(scene, spec, role.flat, lambda signature: signature.ns, other=0, alone=True),
        lane=(spec.num_sms, *(scene.capacity[r] for r in own)),
        knots=knots,
    )
