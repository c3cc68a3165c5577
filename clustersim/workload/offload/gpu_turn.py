"""An update of the GPU, whose state comes through staging buffers where it is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.gradient_path import gradient_width
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.pools import STAGING, STATES
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.traffic import copy
from clustersim.workload.offload.update_phase import UpdatePhase
from clustersim.workload.offload.updater import separate

__all__ = ["return_weights", "update_on_gpu"]

_FULL = WIDTH["fp32"]


def update_on_gpu(
    phase: UpdatePhase,
    subgroup: Subgroup,
    after: Sequence[int],
    *,
    turn: Sequence[int],
    gives: Mapping[str, int],
    undo: bool,
) -> tuple[int, list[int]]:
    """The update with the copies of its state around it; its number, and the ops that end it.

    Parameters
    ----------
    phase : UpdatePhase
    subgroup : Subgroup
    after : Sequence[int]
        what its copies wait for
    turn : Sequence[int]
        what the update waits for beside
    gives : Mapping[str, int]
        that the last op gives back
    undo : bool
        an update that was made is taken back first
    """
    policy, n, place = phase.policy, subgroup.parameters, phase.policy.place(subgroup)
    here = [*after, *turn]
    away = place.states != "gpu"
    cast = _FULL if separate(phase.kernels_of) and phase.width != _FULL else 0
    if place.gradients != "gpu":
        nbytes = gradient_width(policy, phase.width) * n
        here.append(phase.add(copy(policy, "bring gradients", "h2d", nbytes), after))
    for what in STATES if away else ():
        bring = copy(policy, f"bring fp32 {what}", "h2d", _FULL * n)
        staged = {f"{STAGING} {what}": 1}
        held = {"gpu/staging": (_FULL + (cast if what == STATES[0] else 0)) * n}
        here.append(phase.add(bring, after, stream=_copier(policy, "in"), takes=staged, start_bytes=held))
    if undo:
        here = [phase.add(replace(phase.update(subgroup), name="roll back"), here)]
    update = phase.add(phase.update(subgroup), here, gives={} if away else gives)
    ends = [update]
    for what in STATES if away else ():
        back = copy(policy, f"return fp32 {what}", "d2h", _FULL * n)
        given = {f"{STAGING} {what}": 1, **(gives if what == STATES[-1] else {})}
        left = {"gpu/staging": -(_FULL + (cast if what == STATES[-1] else 0)) * n}
        ends.append(phase.add(back, [update], stream=_copier(policy, "out"), gives=given, end_bytes=left))
    return update, ends[1:] or ends


def return_weights(phase: UpdatePhase, subgroup: Subgroup, update: int) -> int:
    """Take new weights to where they live; the op after which they are there."""
    if phase.policy.place(subgroup).weights == "gpu":
        return update
    nbytes = WIDTH[phase.recipe.weights] * subgroup.parameters
    return phase.add(copy(phase.policy, "return weights", "d2h", nbytes), [update])


def _copier(policy: OffloadPolicy, way: str) -> str:
    """The stream of staged states, apart from that of weights, which their coming does not wait for."""
    return f"{STAGING} {way}" if policy.duplex else STAGING
