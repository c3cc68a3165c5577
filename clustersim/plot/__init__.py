"""Figures: a table or a cluster in, Axes out; nothing is shown, saved or kept."""

from __future__ import annotations

from clustersim.plot.accuracy import accuracy
from clustersim.plot.breakdown import breakdown
from clustersim.plot.links import links
from clustersim.plot.measured import measured
from clustersim.plot.memory import memory
from clustersim.plot.pipeline import pipeline
from clustersim.plot.schedule import schedule
from clustersim.plot.timeline import timeline
from clustersim.plot.topology import topology

__all__ = ["accuracy", "breakdown", "links", "measured", "memory", "pipeline", "schedule", "timeline", "topology"]
