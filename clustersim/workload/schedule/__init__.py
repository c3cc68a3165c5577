"""Pipeline schedules: in which order a stage does its micro-batches. A user's own is any callable of the same shape."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.workload.schedule.check import check
from clustersim.workload.schedule.gpipe import gpipe
from clustersim.workload.schedule.ideal import Ideal, ideal
from clustersim.workload.schedule.interleaved import interleaved
from clustersim.workload.schedule.limits import legal
from clustersim.workload.schedule.one_f_one_b import one_f_one_b
from clustersim.workload.schedule.placed import PlacedSchedule, placement_of
from clustersim.workload.schedule.placement import Placement, bidirectional, loop, vee
from clustersim.workload.schedule.unit import Overlapped, Schedule, Table, Unit, units_of
from clustersim.workload.schedule.written import from_table, read_table

__all__ = [
    "SCHEDULES",
    "Ideal",
    "Overlapped",
    "PlacedSchedule",
    "Placement",
    "Schedule",
    "Table",
    "Unit",
    "bidirectional",
    "check",
    "from_table",
    "gpipe",
    "ideal",
    "interleaved",
    "legal",
    "loop",
    "one_f_one_b",
    "placement_of",
    "read_table",
    "units_of",
    "vee",
]

SCHEDULES: Mapping[str, Schedule] = {"gpipe": gpipe, "1f1b": one_f_one_b, "interleaved": interleaved}
"""Short names for plans and cards."""
