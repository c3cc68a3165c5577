"""Pipeline schedules: in which order a stage does its micro-batches. A user's own is any callable of the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from clustersim.workload.schedule.breadth_first import breadth_first
from clustersim.workload.schedule.check import check
from clustersim.workload.schedule.dualpipe import dualpipe
from clustersim.workload.schedule.dualpipev import dualpipev
from clustersim.workload.schedule.gpipe import gpipe
from clustersim.workload.schedule.ideal import Ideal, ideal
from clustersim.workload.schedule.interleaved import interleaved
from clustersim.workload.schedule.interleaved_overlapped import interleaved_overlapped
from clustersim.workload.schedule.interleaved_zero_bubble import interleaved_zero_bubble
from clustersim.workload.schedule.limits import legal
from clustersim.workload.schedule.one_f_one_b import one_f_one_b
from clustersim.workload.schedule.placed import PlacedSchedule, placement_of
from clustersim.workload.schedule.placement import Placement, bidirectional, loop, vee
from clustersim.workload.schedule.unit import Overlapped, Schedule, Table, Unit, units_of
from clustersim.workload.schedule.v_half import v_half
from clustersim.workload.schedule.v_min import v_min
from clustersim.workload.schedule.written import from_table, is_path, read_table
from clustersim.workload.schedule.zb_v import zb_v
from clustersim.workload.schedule.zero_bubble import zb_h1, zb_h2

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
    "breadth_first",
    "check",
    "dualpipe",
    "dualpipev",
    "from_table",
    "gpipe",
    "ideal",
    "interleaved",
    "interleaved_overlapped",
    "interleaved_zero_bubble",
    "is_path",
    "legal",
    "loop",
    "one_f_one_b",
    "placement_of",
    "read_table",
    "units_of",
    "v_half",
    "v_min",
    "vee",
    "zb_h1",
    "zb_h2",
    "zb_v",
]

SCHEDULES: Mapping[str, Schedule] = MappingProxyType(
    {
        "gpipe": gpipe,
        "1f1b": one_f_one_b,
        "interleaved": interleaved,
        "interleaved-overlapped": interleaved_overlapped,
        "interleaved-zb": interleaved_zero_bubble,
        "breadth-first": breadth_first,
        "zb-h1": zb_h1,
        "zb-h2": zb_h2,
        "zb-v": zb_v,
        "v-half": v_half,
        "v-min": v_min,
        "dualpipe": dualpipe,
        "dualpipev": dualpipev,
    }
)
"""Short names for plans and cards."""
