"""A schedule whose chunks do not stand in the usual loop over the stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clustersim.workload.schedule.placement import Placement, loop
from clustersim.workload.schedule.unit import Schedule, Table

__all__ = ["PlacedSchedule", "placement_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedSchedule:
    """A schedule together with where its chunks stand.

    Parameters
    ----------
    name : str
        as results name it
    table : Schedule
        (num_stages, num_virtual, num_micro_batches) -> table
    placement : Callable[[int, int], Placement]
        (num_stages, num_virtual) -> placement
    num_virtual : int, optional
        the only number of chunks a stage that the placement knows; None when it takes several
    """

    name: str = "own"
    table: Schedule
    placement: Callable[[int, int], Placement]
    num_virtual: int | None = None

    def __call__(self, num_stages: int, num_virtual: int, num_micro_batches: int) -> Table:
        """The table, as of any schedule.

        Raises
        ------
        ValueError
            when ``num_virtual`` is not the one of the placement
        """
        if self.num_virtual not in (None, num_virtual):
            raise ValueError(f"num_virtual: {num_virtual} must be {self.num_virtual} for {self.name}")
        return self.table(num_stages, num_virtual, num_micro_batches)


def placement_of(schedule: Schedule, num_stages: int, num_virtual: int) -> Placement:
    """Where the chunks of a schedule stand: in a loop unless it says otherwise."""
    shape = schedule.placement if isinstance(schedule, PlacedSchedule) else loop
    return shape(num_stages, num_virtual)
