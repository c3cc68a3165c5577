"""How often to save: what saves cost, what a failure loses, and the interval between them that wastes least.

With o seconds that a save holds up training, a save every T seconds, d seconds from the end of a save's step to the
moment at which the last rank has written its files, and failures at any time with a mean of M seconds between them, the
part of the time that is wasted is, to first order::

    o / T + (T / 2 + d) / M

A failure loses what was trained since the state of the last committed version: T / 2 in the mean, and d, since a
version that is being written cannot be gone back to. Least is lost with T = sqrt(2 o M), whatever d is.

Not modelled: a failure as an event of the run, the time to notice one, to start again and to read the state, versions
that are lost with the node that holds them, and failures while the work since the last one is done again.

References
----------
Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Annotated

from clustersim.analysis.checkpoints import checkpoints
from clustersim.analysis.summary import summary
from clustersim.faults import BadInput, Fault
from clustersim.library.job import JobSetup
from clustersim.study.point import prepare, run_point
from clustersim.trace.result import Result
from clustersim.units import Unit

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Interval", "checkpoint_intervals", "lost_work", "young_interval"]

_ROUNDS = 3
"""The first save of a run finds an empty buffer; what the second and later ones meet is the steady state."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A save every so many steps.

    Parameters
    ----------
    every : int
        steps
    step_time : float
        in the mean, saves included [s]
    plain_step_time : float
        without saves [s]
    behind : float
        from the end of a save's step to its commit [s]
    """

    every: int
    step_time: Annotated[float, Unit("s")]
    plain_step_time: Annotated[float, Unit("s")]
    behind: Annotated[float, Unit("s")]

    @property
    def seconds(self) -> float:
        """From one save to the next [s]."""
        return self.every * self.step_time

    @property
    def held_up(self) -> float:
        """What one save adds to the steps between two of them [s]."""
        return self.every * (self.step_time - self.plain_step_time)

    @property
    def slowdown(self) -> float:
        """Of a step, by saves alone (1: none)."""
        return self.step_time / self.plain_step_time

    @property
    def lost(self) -> float:
        """Mean time of training that a failure loses [s]."""
        return self.seconds / 2 + self.behind

    def waste(self, mtbf: float) -> float:
        """Part of the time that goes to saves and to work done twice (fraction), to first order.

        Parameters
        ----------
        mtbf : float
            mean time between failures of the whole job [s]
        """
        return self.held_up / self.seconds + self.lost / mtbf


def checkpoint_intervals(setup: JobSetup, every: Iterable[int]) -> tuple[Interval, ...]:
    """Run a job that saves, with several numbers of steps between saves, and without.

    Parameters
    ----------
    setup : JobSetup
        with ``plan.checkpoint.policy``
    every : Iterable[int]
        steps between saves

    Raises
    ------
    BadInput
        when the job saves nothing, or as :func:`clustersim.study.point.prepare` does
    """
    if setup.values.get("plan.checkpoint.policy") is None:
        rule = "must be given: the job saves nothing"
        raise BadInput([Fault(key="plan.checkpoint.policy", value=None, rule=rule, nearest="lazy")])
    kept = {key: value for key, value in setup.values.items() if not key.startswith("plan.checkpoint.")}
    _, plain = _steady(JobSetup.of(setup.name, **kept))
    return tuple(_interval(setup, n, plain) for n in every)


def _interval(setup: JobSetup, every: int, plain: float) -> Interval:
    found, step = _steady(setup.with_values({"plan.checkpoint.every": every}))
    last = checkpoints(found.trace).iloc[-1]
    behind = float(last["committed"] - last["begun"])
    return Interval(every=every, step_time=step, plain_step_time=plain, behind=behind)


def _steady(setup: JobSetup) -> tuple[Result, float]:
    """A run, and the mean step of its last round [s]."""
    point = prepare(setup)
    period = point.job.period
    steps = max(_ROUNDS * period, point.job.usual_steps, 2 * _ROUNDS // period * period)
    found = run_point(replace(point, arguments={**point.arguments, "steps": steps}))
    return found, sum(summary(found)["step_times_s"][-period:]) / period


def young_interval(held_up: float, mtbf: float) -> float:
    """Time between two saves with which least is wasted [s].

    Parameters
    ----------
    held_up : float
        by one save [s]
    mtbf : float
        mean time between failures of the whole job [s]
    """
    return sqrt(2 * held_up * mtbf)


def lost_work(versions: pd.DataFrame, failures: Sequence[float]) -> list[float]:
    """What failures at some instants of a run lose [s]: the time since the state of the last committed version.

    Parameters
    ----------
    versions : DataFrame
        of one run, from :func:`clustersim.analysis.checkpoints.checkpoints`
    failures : Sequence[float]
        instants of the run [s]; one before the first commit loses all since its start
    """
    kept = [versions["begun"][versions["committed"] <= at] for at in failures]
    return [at - (float(begun.max()) if len(begun) else 0.0) for at, begun in zip(failures, kept, strict=True)]
