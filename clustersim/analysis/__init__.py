"""Tables from traces and numbers from records; nothing here needs the engine, so real traces are welcome too."""

from __future__ import annotations

from clustersim.analysis.bounds import bounds
from clustersim.analysis.breakdown import breakdown
from clustersim.analysis.checkpoints import checkpoints
from clustersim.analysis.compare import changed_collectives, compare, compare_breakdowns
from clustersim.analysis.critical_path import critical_path
from clustersim.analysis.definitions import definitions
from clustersim.analysis.fits import out_of_memory
from clustersim.analysis.links import links
from clustersim.analysis.memory import memory
from clustersim.analysis.phases import phases
from clustersim.analysis.summary import summary

__all__ = [
    "bounds",
    "breakdown",
    "changed_collectives",
    "checkpoints",
    "compare",
    "compare_breakdowns",
    "critical_path",
    "definitions",
    "links",
    "memory",
    "out_of_memory",
    "phases",
    "summary",
]
