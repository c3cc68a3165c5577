"""Pipeline schedules: in which order a stage does its micro-batches. A user's own is any callable of the same shape."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.workload.schedule.check import check
from clustersim.workload.schedule.gpipe import gpipe
from clustersim.workload.schedule.interleaved import interleaved
from clustersim.workload.schedule.one_f_one_b import one_f_one_b
from clustersim.workload.schedule.unit import Schedule, Table, Unit

__all__ = ["SCHEDULES", "Schedule", "Table", "Unit", "check", "gpipe", "interleaved", "one_f_one_b"]

SCHEDULES: Mapping[str, Schedule] = {"gpipe": gpipe, "1f1b": one_f_one_b, "interleaved": interleaved}
"""Short names for plans and cards."""
