"""Many runs: points from settings, sweeps over them, runs on disk."""

from __future__ import annotations

from clustersim.study.point import Point, prepare, run_point
from clustersim.study.run_folder import LiveRun, open_run, write_run
from clustersim.study.sweep import sweep

__all__ = ["LiveRun", "Point", "open_run", "prepare", "run_point", "sweep", "write_run"]
