"""What a rank saves, and where it is when the save begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.place import DRIVES, Tier
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.pools import STATES
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.precision import find_recipe
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.weights import Weights

__all__ = ["State", "state_of"]

State = Counter[tuple[str, Tier]]
"""Bytes of ``weights`` and ``optimizer`` by the tier that they are on [B]."""


def state_of(
    own: Weights, kind: Replicas, *, offload: OffloadPolicy | None, subgroups: Sequence[Subgroup], step: int
) -> State:
    """A rank's part of the weights of one kind and of their optimizer state.

    Ranks that hold the same divide it evenly, so every byte is saved once: with Adam and 16-bit weights 14 bytes a
    parameter over all of them. Weights that are not trained are not saved.

    Parameters
    ----------
    own : Weights
        of this kind on the rank
    kind : Replicas
        who holds the same
    offload : OffloadPolicy, optional
    subgroups : Sequence[Subgroup]
        of this kind, where something is offloaded
    step : int
        which the save follows: a cache of drives holds other subgroups in each of the policy's period
    """
    width = WIDTH[find_recipe(own.recipe).weights]
    if offload is None or not subgroups:
        optimizer = own.resident_bytes()["gpu/optimizer"] * own.state_shards // kind.ranks
        return Counter({("weights", "gpu"): width * -(-own.parameters // kind.ranks), ("optimizer", "gpu"): optimizer})
    found: State = Counter()
    kept = offload.kept(subgroups, step % offload.period)
    for subgroup in subgroups:
        place = offload.place(subgroup)
        n = -(-subgroup.parameters * own.state_shards // kind.ranks)
        cached = place.states in DRIVES and subgroup.index in kept
        found["weights", place.weights] += width * n
        found["optimizer", "host" if cached else place.states] += WIDTH["fp32"] * len(STATES) * n
    return found
