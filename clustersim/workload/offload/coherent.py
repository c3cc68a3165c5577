"""What a policy says of a subgroup must go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from clustersim.faults import BadInput, Fault
from clustersim.workload.offload.place import Tier, Updater
from clustersim.workload.offload.policy import OffloadPolicy, Release
from clustersim.workload.offload.subgroup import Subgroup

__all__ = ["require_coherent"]


def require_coherent(policy: OffloadPolicy, subgroup: Subgroup) -> None:
    """Refuse answers that are none, or that leave the CPU without what it works on.

    Raises
    ------
    BadInput
        with every fault; keys name the method that answered
    """
    faults = list(_faults(policy, subgroup))
    if faults:
        raise BadInput(faults)


def _faults(policy: OffloadPolicy, subgroup: Subgroup) -> Iterator[Fault]:
    place, tier, release = policy.place(subgroup), policy.tier(subgroup), policy.depends(subgroup)
    where = f"of {policy.name}, subgroup {subgroup.index}"
    answers: tuple[tuple[str, object, tuple[str, ...]], ...] = (
        ("place.weights", place.weights, get_args(Tier)),
        ("place.gradients", place.gradients, get_args(Tier)),
        ("place.states", place.states, get_args(Tier)),
        ("tier", tier, get_args(Updater)),
        ("depends", release, get_args(Release)),
    )
    known = True
    for name, given, words in answers:
        if given not in words:
            rule = f"{where}, must be one of {', '.join(words)}"
            yield Fault(key=f"plan.offload.{name}", value=given, rule=rule, nearest=words[0])
            known = False
    if not known or tier != "cpu":
        return
    for name in ("gradients", "states"):
        if getattr(place, name) == "gpu":
            rule = f"{where}, must be off the GPU: tier says that the CPU updates it"
            yield Fault(key=f"plan.offload.place.{name}", value="gpu", rule=rule, nearest="host")
