"""Saves of a job's state: strategies, what they save, and their ops in a program."""

from __future__ import annotations

from collections.abc import Mapping

from clustersim.workload.checkpoint.policy import Asynchronous, Background, Checkpoint, Lazy, Synchronous

__all__ = ["STRATEGIES", "Asynchronous", "Background", "Checkpoint", "Lazy", "Synchronous"]

STRATEGIES: Mapping[str, type[Checkpoint]] = {kind.name: kind for kind in (Synchronous, Asynchronous, Lazy)}
"""Strategies by name."""
