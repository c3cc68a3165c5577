"""Published numbers beside simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from clustersim.study.reproduce.runs import Runs
from clustersim.study.reproduce.system import NOT_YET, Quantity, System

__all__ = ["Outcome", "Reproduction", "reproduce"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one quantity.

    Parameters
    ----------
    quantity : Quantity
    simulated : float or None
        in its unit; None where it is not simulated
    """

    quantity: Quantity
    simulated: float | None

    @property
    def error(self) -> float | None:
        """See :meth:`Quantity.error`."""
        return None if self.simulated is None else self.quantity.error(self.simulated)

    @property
    def within(self) -> bool | None:
        """See :meth:`Quantity.within`."""
        return None if self.simulated is None else self.quantity.within(self.simulated)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reproduction:
    """What became of some systems.

    Parameters
    ----------
    outcomes : Sequence[tuple[System, tuple[Outcome, ...]]]
        in the order in which they were asked for
    """

    outcomes: Sequence[tuple[System, tuple[Outcome, ...]]]

    def answer(self) -> dict[str, Any]:
        """The fields of ``reproduce --json``: a row a quantity, and one of a system that is not simulated yet."""
        return {"systems": [row for system, found in self.outcomes for row in _rows(system, found)]}


def reproduce(
    systems: Sequence[System], *, processes: int = 1, progress: Callable[[int], None] | None = None
) -> Reproduction:
    """Simulate systems.

    Parameters
    ----------
    systems : Sequence[System]
    processes : int
        more than 1: systems at the same time, the slow ones first
    progress : callable, optional
        called with the number of systems that are done

    Raises
    ------
    BadInput
        when a job of theirs has faults
    """
    found: dict[int, tuple[Outcome, ...]] = {}
    pending = sorted(range(len(systems)), key=lambda k: not systems[k].slow)
    for k, outcomes in _outcomes(systems, pending, processes):
        found[k] = outcomes
        if progress is not None:
            progress(len(found))
    return Reproduction(outcomes=[(system, found[k]) for k, system in enumerate(systems)])


def _outcomes(
    systems: Sequence[System], pending: Sequence[int], processes: int
) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
    """(which system, what became of it) as they come in."""
    if min(processes, sum(bool(system.quantities) for system in systems)) <= 1:
        yield from ((k, _outcome(systems[k])) for k in pending)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as executor:
        futures = {executor.submit(_outcome, systems[k]): k for k in pending}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _outcome(system: System) -> tuple[Outcome, ...]:
    runs = Runs()
    return tuple(
        Outcome(quantity=one, simulated=None if one.simulated is None else float(one.simulated(runs)))
        for one in system.quantities
    )


def _rows(system: System, outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    head = {"number": system.number, "name": system.name}
    for outcome in outcomes:
        one = outcome.quantity
        yield head | {
            "job": one.job or None,
            "quantity": one.name,
            "unit": one.unit,
            "relation": one.relation,
            "published": one.published,
            "simulated": outcome.simulated,
            "error": outcome.error,
            "grade": one.grade,
            "tolerance": one.tolerance,
            "within": outcome.within,
            "reason": one.reason or None,
        }
    if not outcomes:
        names = ("job", "quantity", "unit", "relation", "published", "simulated", "error", "grade", "tolerance")
        yield head | dict.fromkeys((*names, "within")) | {"reason": NOT_YET}
