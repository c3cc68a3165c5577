"""The result of a run: the record, and what people ask of it, built when they ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustersim.topology.topology import Topology
from clustersim.trace.collectives import CollectiveRecord
from clustersim.trace.coverage import Coverage
from clustersim.trace.record import Rates, Record

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Result"]


@dataclass(kw_only=True, eq=False)
class Result:
    """What :func:`clustersim.simulate` returns.

    Attributes
    ----------
    record : Record
        arrays, one set a simulated lane
    topology : Topology
        the cluster, perturbations applied
    fold : str
        ``exact`` or ``off``
    wall_s : float
        real time of the simulation [s]
    warnings : tuple[str, ...]
        what was assumed, split or without effect
    inputs : Mapping[str, Any]
        provenance: cards with their hashes, seed, versions, perturbations
    rates, chosen : callable
        what :attr:`usage` and :attr:`collectives` are made from, when they are asked for
    """

    record: Record
    topology: Topology
    fold: str
    wall_s: float
    warnings: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    rates: Callable[[], list[Rates]] = field(default=list, repr=False)
    chosen: Callable[[], list[CollectiveRecord]] = field(default=list, repr=False)

    def __repr__(self) -> str:
        """One line: what ran, how it ended, how it was simulated."""
        record = self.record
        names = ", ".join(job.name for job in record.jobs)
        ranks = sum(job.num_ranks for job in record.jobs)
        return (
            f"Result({names} on {self.topology.name}: {record.status}, {ranks:,} ranks as {len(record.lanes):,} "
            f"lanes, {self.wall_s:.3g} s)"
        )

    @cached_property
    def coverage(self) -> Coverage:
        """Fractions of op time by where the numbers came from, with ``.missing``: what is worth measuring."""
        return Coverage(self.record.coverage, self.record.timed)

    @cached_property
    def trace(self) -> pd.DataFrame:
        """One row an op of each class, columns as in :mod:`clustersim.trace.schema`."""
        from clustersim.trace.frame import frame

        return frame(self.record)

    def trace_of(self, ranks: Iterable[int], job: int = 0) -> pd.DataFrame:
        """The rows of any ranks, each with its own number and multiplicity 1; ``cause`` refers to :attr:`trace`.

        Parameters
        ----------
        ranks : Iterable[int]
        job : int
            whose ranks they are, by its place among the jobs of the run

        Raises
        ------
        ValueError
            for a rank that the job does not have
        """
        from clustersim.trace.frame import frame_of

        return frame_of(self.record, list(ranks), job)

    @cached_property
    def usage(self) -> list[Rates]:
        """Used rate and users of every kind of resource over time, one entry a class of equal resources."""
        return self.rates()

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """How each kind of collective ran and why, columns as in :mod:`clustersim.trace.collectives`."""
        from clustersim.trace.collectives import collectives_frame
        from clustersim.trace.frame import run_names

        return collectives_frame(self.chosen(), run_names(self.record))

    @cached_property
    def classes(self) -> pd.DataFrame:
        """Which class stands for each rank: columns ``job, rank, lane, representative, multiplicity``."""
        import pandas as pd

        frames = []
        for job, lane_of in enumerate(self.record.lane_of):
            lanes = [self.record.lanes[k] for k in lane_of.tolist()]
            frames.append(
                pd.DataFrame(
                    {
                        "job": job,
                        "rank": range(len(lane_of)),
                        "lane": lane_of,
                        "representative": [lane.rank for lane in lanes],
                        "multiplicity": [lane.multiplicity for lane in lanes],
                    }
                )
            )
        return pd.concat(frames, ignore_index=True)

    def write(self, folder: str | Path) -> Path:
        """Write the run folder: resolved inputs, summary.json and the tables as Parquet; returns its path."""
        from clustersim.trace.formats.folder import write

        return write(self, Path(folder))
