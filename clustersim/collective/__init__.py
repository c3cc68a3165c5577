"""Collectives: what each algorithm puts on which link, in how many steps, and which one runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clustersim.collective.explanations import explain, explain_sizes
    from clustersim.collective.traffic import Algorithm, GroupShape, Phase, Traffic

__all__ = ["Algorithm", "GroupShape", "Phase", "Traffic", "explain", "explain_sizes"]

_HOME = {"explain": "explanations", "explain_sizes": "explanations"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'clustersim.collective' has no attribute {name!r}")
    return getattr(import_module(f"clustersim.collective.{_HOME.get(name, 'traffic')}"), name)
