"""Runs that the quantities of a system share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, ParamSpec, TypeVar

from clustersim.analysis.summary import summary
from clustersim.library.job import load_job
from clustersim.study.point import run_point

__all__ = ["Runs"]

P = ParamSpec("P")
T = TypeVar("T")


class Runs:
    """What was simulated for one system; each run is made once."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}

    def step(self, job: str, values: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The summary of a job card's run, with other values for some of its settings.

        Parameters
        ----------
        job : str
            name of the card
        values : Mapping[str, Any], optional
            by the keys of :data:`clustersim.library.keys.KEYS`

        Raises
        ------
        BadInput
            as :func:`clustersim.study.point.prepare` does
        """
        setup = load_job(job).with_values(values or {})
        key = repr(sorted(setup.values.items()))
        if key not in self._found:
            self._found[key] = summary(run_point(setup))
        found: Mapping[str, Any] = self._found[key]
        return found

    def once(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """``function`` of these arguments, called the first time; for what a summary does not tell.

        Keep what it returns small: the numbers, not the run.
        """
        key = function, args, tuple(sorted(kwargs.items()))
        if key not in self._found:
            self._found[key] = function(*args, **kwargs)
        found: T = self._found[key]
        return found
