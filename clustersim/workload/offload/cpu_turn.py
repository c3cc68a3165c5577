"""An update of the CPU: what it casts and scales before, and how new weights come to where the passes read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.number_format import WIDTH
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.traffic import cast_pass, copy, host_pass, touch
from clustersim.workload.offload.update_phase import UpdatePhase
from clustersim.workload.op import Compute

__all__ = ["bring_weights", "scale_gradients", "update_on_cpu"]

_FULL = WIDTH["fp32"]


def update_on_cpu(
    phase: UpdatePhase, subgroup: Subgroup, after: Sequence[int], *, gives: Mapping[str, int], undo: bool
) -> int:
    """The update with its passes before it, in turn; its number.

    Parameters
    ----------
    phase : UpdatePhase
    subgroup : Subgroup
    after : Sequence[int]
        what the first of them waits for
    gives : Mapping[str, int]
        that the update gives back
    undo : bool
        an update that was made is taken back first
    """
    policy, n = phase.policy, subgroup.parameters
    last = [*after]
    if undo:
        last = [phase.add(replace(phase.update(subgroup), name="roll back"), last, stream="cpu")]
    if policy.cast == "late" and phase.width != _FULL:
        last = [phase.add(cast_pass(policy, "cast gradients", (_FULL + phase.width) * n), last, stream="cpu")]
    if policy.scales and not policy.collects:
        last = [scale_gradients(phase, subgroup, last, stream="cpu")]
    return phase.add(phase.update(subgroup), last, stream="cpu", gives=gives)


def scale_gradients(phase: UpdatePhase, subgroup: Subgroup, after: Sequence[int], *, stream: str) -> int:
    """A pass over fp32 gradients on the host."""
    op = host_pass(phase.policy, "scale gradients", "cast", 2 * _FULL * subgroup.parameters)
    return phase.add(op, after, stream=stream)


def bring_weights(phase: UpdatePhase, subgroup: Subgroup, updated: Sequence[int], *, late: bool) -> int:
    """Bring what the CPU has updated to where the passes read it, in their format; the last op of that.

    Parameters
    ----------
    phase : UpdatePhase
    subgroup : Subgroup
    updated : Sequence[int]
        what it waits for
    late : bool
        the copy also waits for the passes
    """
    policy, n = phase.policy, subgroup.parameters
    width = WIDTH[phase.recipe.weights]
    waits, sent, cast = [*updated], width, policy.cast_weights or policy.cast
    thread = "cast" if policy.collects or not policy.serial else "cpu"
    pinned = policy.pinned_weights
    if cast in ("cpu", "late") and width != _FULL:
        if policy.temporaries:
            pinned = False
            waits = [phase.add(touch(policy, width * n), waits, stream=thread)]
        waits = [phase.add(cast_pass(policy, "cast weights", (_FULL + width) * n), waits, stream=thread)]
    elif cast == "gpu":
        sent = _FULL
    if policy.place(subgroup).weights != "gpu":
        return max(waits)
    waits += phase.exits if late else ()
    bring = copy(policy, "bring weights", "h2d", sent * n, pinned=pinned)
    last = phase.add(bring, waits, stream=thread if policy.serial else "h2d")
    if sent != width:
        kernels = (memory_pass((sent + width) * n, dtype="fp32"),)
        back = Compute(name="cast weights", kind="cast", kernels=kernels, category="optimizer")
        last = phase.add(back, [last], stream="cast weights")
    return last
