"""Many runs: points from settings, sweeps over them, runs on disk."""

from __future__ import annotations

from clustersim.study.memory_report import MemoryReport, memory_report
from clustersim.study.messages import estimate_of
from clustersim.study.point import Point, prepare, run_point
from clustersim.study.run_folder import LiveRun, open_run, write_run
from clustersim.study.sweep import sweep
from clustersim.study.time_to_accuracy import TimeToAccuracy, time_to_accuracy

__all__ = [
    "LiveRun",
    "MemoryReport",
    "Point",
    "TimeToAccuracy",
    "estimate_of",
    "memory_report",
    "open_run",
    "prepare",
    "run_point",
    "sweep",
    "time_to_accuracy",
    "write_run",
]
