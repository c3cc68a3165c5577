"""What goes with checkpoints, and what a strategy says of its own settings."""

from __future__ import annotations

from collections.abc import Iterator

from clustersim.faults import Fault
from clustersim.workload.case import Case
from clustersim.workload.checkpoint.policy import Checkpoint

__all__ = ["CHECKPOINT_KEYS", "checkpoint_faults", "checkpoint_values"]

CHECKPOINT_KEYS = ("plan.checkpoint", "plan.sync_every")


def checkpoint_values(case: Case) -> Iterator[Fault]:
    """The strategy by itself."""
    policy: object = case.plan.checkpoint
    if policy is None:
        return
    if isinstance(policy, Checkpoint):
        yield from policy.faults()
    else:
        rule = "must be a clustersim.workload.checkpoint.Checkpoint"
        yield Fault(key="plan.checkpoint", value=policy, rule=rule)


def checkpoint_faults(case: Case) -> Iterator[Fault]:
    """Ranks that hold the same weights must hold the same state to divide it."""
    if case.plan.checkpoint is not None and case.plan.sync_every is not None:
        rule = "cannot go with plan.checkpoint: workers' states differ between two exchanges"
        yield Fault(key="plan.sync_every", value=case.plan.sync_every, rule=rule)
