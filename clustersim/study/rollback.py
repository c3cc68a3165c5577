"""What speculation costs: steps whose validation fails take their updates back and do them again."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.analysis.summary import summary
from clustersim.library.job import JobSetup
from clustersim.study.point import run_point

__all__ = ["Rollback", "rollback"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollback:
    """Steps of one job.

    Parameters
    ----------
    right_s, wrong_s : float
        a step whose updates were right to go ahead, and one whose updates were not [s]
    waiting_s : float
        one whose updates wait for the norm of all gradients [s]
    """

    right_s: float
    wrong_s: float
    waiting_s: float

    def expected_s(self, probability: float) -> float:
        """Mean step where validation fails with this probability [s]."""
        return self.right_s + probability * (self.wrong_s - self.right_s)

    @property
    def break_even(self) -> float:
        """Probability above which waiting is better."""
        return min(1.0, max(0.0, (self.waiting_s - self.right_s) / (self.wrong_s - self.right_s)))


def rollback(setup: JobSetup) -> Rollback:
    """Simulate a job three times.

    Parameters
    ----------
    setup : JobSetup
        with the policy ``superoffload``

    Raises
    ------
    BadInput
        as :func:`clustersim.study.point.run_point` does
    """

    def step(**settings: bool) -> float:
        values = {f"plan.offload.{name}": value for name, value in settings.items()} | {"steps": 3}
        return float(summary(run_point(setup.with_values(values)))["step_time_s"])

    return Rollback(
        right_s=step(speculates=True, rolls_back=False),
        wrong_s=step(speculates=True, rolls_back=True),
        waiting_s=step(speculates=False),
    )
