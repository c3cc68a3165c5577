"""Settings of a plan that changed nothing of the job: it is built once more without each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

import numpy as np

from clustersim.faults import BadInput
from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS
from clustersim.workload.job import Job

__all__ = ["MOST_OPS", "idle_settings"]

MOST_OPS = 400_000
"""Ops of all jobs that are built again, half a second's; settings of a larger job are judged by rules alone."""

_FOR_TRAINING = ("plan.optimizer",)
"""Of which some values mean another training, not other work: AdamW takes what Adam takes."""


def idle_settings(setup: JobSetup, job: Job, told: Collection[str], build: Callable[[JobSetup], Job]) -> Iterator[str]:
    """A sentence for each setting of the plan, given beside those of a card, that the job is the same without.

    Rules of their own say of a setting why it does nothing; this holds for those that no rule knows.

    Parameters
    ----------
    setup : JobSetup
    job : Job
        what it became
    told : Collection[str]
        settings that a rule has told of
    build : callable
        settings -> the job that they become

    Notes
    -----
    A value that the plan would have had anyway is no setting without effect, and where a plan leaves open what it takes
    it may be that one.
    """
    asked = [key for key in setup.values if _is_judged(key) and key in setup.changed and key not in told]
    if len(asked) * sum(len(program.arrays()) for program in job.programs) > MOST_OPS:
        return
    for key in asked:
        others = {name: value for name, value in setup.values.items() if name != key}
        try:
            without = build(replace(setup, values=others))
        except BadInput:  # the others need it
            continue
        usual = _resolved(without, key)
        if usual is not None and _differing(without, job) == {key.split(".")[1]} and _same(without, job):
            yield f"{key}: no effect: the job is the same without it"


def _is_judged(key: str) -> bool:
    """Settings of the plan, which are all seen in the job; a policy is what its settings are of."""
    return key in KEYS and key.startswith("plan.") and not key.endswith(".policy") and key not in _FOR_TRAINING


def _differing(one: Job, other: Job) -> set[str]:
    """Settings in which two plans differ; more than one where a profile says others without it."""
    return {name for name in one.plan if one.plan[name] != other.plan[name]}


def _resolved(job: Job, key: str) -> object:
    """What a job's plan takes for a setting; None where it leaves that open."""
    _, *tables, name = key.split(".")
    values = job.plan
    for table in tables:
        values = values[table] or {}
    return values.get(name)


def _same(one: Job, other: Job) -> bool:
    """Whether two jobs have the same programs, on the same ranks, in the same groups."""
    return (
        [program.arrays().digest for program in one.programs] == [program.arrays().digest for program in other.programs]
        and np.array_equal(one.program_of, other.program_of)
        and len(one.families) == len(other.families)
        and all(
            mine.slots == its.slots and np.array_equal(mine.members, its.members)
            for mine, its in zip(one.families, other.families, strict=True)
        )
        and (one.pools, one.ledger, one.rounds) == (other.pools, other.ledger, other.rounds)
    )
