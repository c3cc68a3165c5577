"""The updates of a step, subgroup by subgroup: read, update, cast, write, as a policy wants them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustersim.workload.offload.coherent import require_coherent
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.offload.turns import Turns
from clustersim.workload.offload.update_phase import UpdatePhase
from clustersim.workload.op import Op
from clustersim.workload.optimizers.rule import Optimizer
from clustersim.workload.optimizers.separate import UpdateKernels
from clustersim.workload.precision import Recipe
from clustersim.workload.program import Program

__all__ = ["Updated", "write_updates"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Updated:
    """Where the updates of one step stand in a program.

    Parameters
    ----------
    first, last : Mapping[int, Sequence[int]]
        by subgroup: its first ops, and those after which it is where it lives
    arrived : Mapping[int, int]
        by subgroup: the op after which its new weights are there
    validated : int, optional
        the op that says whether updates were right to go on before all gradients were there
    """

    first: Mapping[int, Sequence[int]]
    last: Mapping[int, Sequence[int]]
    arrived: Mapping[int, int]
    validated: int | None = None


def write_updates(
    program: Program,
    policy: OffloadPolicy,
    subgroups: Sequence[Subgroup],
    gathered: Mapping[int, Sequence[int]],
    *,
    recipe: Recipe,
    optimizer: str | Optimizer,
    kernels_of: UpdateKernels,
    width: int,
    clip: bool,
    step: int,
    exits: Sequence[int],
    opening: Op | None = None,
) -> Updated:
    """Append the updates of a stage in the policy's order.

    The CPU's updates stand on the stream ``cpu``, its casts beside them on ``cast`` unless one thread does both; copies
    and accesses of drives have a stream for each way, so that they pass beside each other and never overtake. Where
    validation fails, every update that it is about is taken back and done again, one subgroup after the other; a
    forward pass that would have begun in vain is left out, since nothing else could run in its time.

    Parameters
    ----------
    program : Program
    policy : OffloadPolicy
    subgroups : Sequence[Subgroup]
        of the stage
    gathered : Mapping[int, Sequence[int]]
        by subgroup: ops after which its gradients are where they wait
    recipe : Recipe
    optimizer : str or Optimizer
        of what the GPU updates
    kernels_of : {"fused", "copied", "foreach", "loop"}
        of such an update
    width : int
        bytes of a gradient on the GPU [B]
    clip : bool
        gradients are clipped by their norm
    step : int
        of the policy's period
    exits : Sequence[int]
        last ops of the passes, and sums of gradients behind them
    opening : Op, optional
        what the thread that updates does first when all gradients are there

    Raises
    ------
    BadInput
        when the policy contradicts itself
    """
    phase = UpdatePhase(
        program=program,
        policy=policy,
        recipe=recipe,
        optimizer=optimizer,
        kernels_of=kernels_of,
        width=width,
        exits=exits,
    )
    turns = Turns(phase=phase)
    everything = sorted({*exits, *(op for ops in gathered.values() for op in ops)})
    barrier: list[int] = []
    ahead: list[int] = []
    warm, stays = policy.kept(subgroups, (step - 1) % policy.period), policy.kept(subgroups, step)
    order = policy.order(subgroups, step)
    closing = _closing(policy, [subgroups[index] for index in order])
    for index in order:
        subgroup = subgroups[index]
        require_coherent(policy, subgroup)
        release = policy.depends(subgroup)
        turns.begin(policy.window(subgroup))
        if release == "norm" and not barrier:
            if opening is not None:
                everything = [phase.add(opening, everything, stream="cpu")]
            barrier = [turns.barrier(everything, sum(s.parameters for s in subgroups) if clip else 0)]
        after = {"norm": barrier, "gradient": gathered[index], "previous step": ()}[release]
        late = release == "previous step"
        turns.write(subgroup, after, warm=index in warm, stays=index in stays, late=late)
        if index in closing:
            turns.send()
        if release == "gradient":
            ahead.append(index)
    if policy.collects:
        turns.collect(subgroups)
    validated = None
    if policy.validates and ahead:
        validated = turns.validate(everything, sum(s.parameters for s in subgroups))
        for index in ahead if policy.rolls_back else ():
            turns.write(subgroups[index], [validated], warm=index in stays, stays=index in stays, late=False, undo=True)
    return Updated(first=turns.first, last=turns.last, arrived=turns.arrived, validated=validated)


def _closing(policy: OffloadPolicy, ordered: Sequence[Subgroup]) -> frozenset[int]:
    """Indices of the subgroups that the CPU updates last in their windows."""
    last: dict[int, int] = {}
    for subgroup in ordered:
        window = policy.window(subgroup)
        if window is not None and policy.tier(subgroup) == "cpu":
            last[window] = subgroup.index
    return frozenset(last.values())
