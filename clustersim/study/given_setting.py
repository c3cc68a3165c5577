"""A setting that was given, with all that a rule may look at to say whether it changed anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clustersim.library.job import JobSetup
from clustersim.topology.topology import Topology
from clustersim.trace.result import Result
from clustersim.workload.job import Job
from clustersim.workload.op import Op

__all__ = ["GivenSetting"]


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenSetting:
    """One setting of a run.

    Parameters
    ----------
    key : str
    value : Any
        as it was given
    setup : JobSetup
        all settings
    topology : Topology
        what they became, without perturbations
    job : Job
        what they became
    result : Result
        of the run
    """

    key: str
    value: Any
    setup: JobSetup
    topology: Topology
    job: Job
    result: Result

    @property
    def ops(self) -> Iterator[Op]:
        """Ops of all programs of the job, each once a program."""
        return (op for program in self.job.programs for op in program.arrays().ops)
