"""What goes with offloading, and what a policy says of its own settings."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.offload.policy import OffloadPolicy
from clustersim.workload.offload.words import word_faults

__all__ = ["OFFLOAD_KEYS", "offload_faults", "offload_values"]

OFFLOAD_KEYS = ("plan.offload", "plan.optimizer", "plan.schedule", "plan.sync_every", "dtype")

_UPDATES = ("adam", "adamw")
_TWO_WAYS = ("dualpipe",)


def offload_values(case: Case) -> Iterator[Fault]:
    """The policy by itself."""
    policy: object = case.plan.offload
    if policy is None:
        return
    if isinstance(policy, OffloadPolicy):
        yield from word_faults(policy)
        yield from policy.faults()
    else:
        rule = "must be a clustersim.workload.offload.OffloadPolicy"
        yield Fault(key="plan.offload", value=policy, rule=rule)


def offload_faults(case: Case) -> Iterator[Fault]:
    """What is known of the host's update, and of programs that it can stand behind."""
    plan = case.plan
    if plan.offload_activations and plan.sequence_slices > 1:
        rule = "must be 1 with plan.offload_activations: only one slice's activations are there at a time"
        yield Fault(key="plan.sequence_slices", value=plan.sequence_slices, rule=rule, nearest=1)
    if plan.offload is None:
        return
    if plan.optimizer not in _UPDATES:
        rule = "is not known as an update of the host; with plan.offload it must be adam or adamw"
        yield Fault(key="plan.optimizer", value=plan.optimizer, rule=rule, nearest="adam")
    if plan.sync_every is not None:
        rule = "cannot go with plan.offload: an exchange between workers takes weights that are on GPUs"
        yield Fault(key="plan.sync_every", value=plan.sync_every, rule=rule)
    if case.schedule in _TWO_WAYS:
        rule = "keeps every chunk on two stages, which cannot be updated off their GPUs yet"
        yield Fault(key="plan.schedule", value=case.schedule, rule=rule, nearest="1f1b")
