"""A sweep: the product of some values over one setup, every combination kept, also those that do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import asdict
from itertools import product
from typing import Any

from clustersim.analysis.summary import summary
from clustersim.engine.deadlock import Deadlock
from clustersim.faults import BadInput
from clustersim.library.job import JobSetup
from clustersim.study.point import run_point

__all__ = ["points", "sweep"]


def points(vary: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of values, the last key fastest.

    Examples
    --------
    >>> points({"plan.tp": [1, 2], "nodes": [4]})
    [{'plan.tp': 1, 'nodes': 4}, {'plan.tp': 2, 'nodes': 4}]
    """
    return [dict(zip(vary, values, strict=True)) for values in product(*vary.values())]


def sweep(
    setup: JobSetup,
    vary: Mapping[str, Sequence[Any]],
    *,
    fold: bool = True,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[dict[str, Any]]:
    """Run every combination.

    Parameters
    ----------
    setup : JobSetup
    vary : Mapping[str, Sequence[Any]]
        setting -> its values
    fold : bool
        see :func:`clustersim.engine.simulate.simulate`
    executor : Executor, optional
        where to run, such as a process pool; here and one after the other when None
    progress : callable, optional
        called with the number of combinations done

    Returns
    -------
    list[dict]
        one a combination: ``point`` (its values) and the fields of its summary; of one that was refused ``point``,
        ``status`` ``bad_input`` and ``errors``; of one that was never run because of an interrupt ``interrupted``.
        Those that fit come first, the most tokens a second and GPU, or samples without tokens, before the others.
    """
    wanted = points(vary)
    rows: dict[int, dict[str, Any]] = {}
    try:
        for number, row in _rows(setup, wanted, fold, executor):
            rows[number] = row
            if progress is not None:
                progress(len(rows))
    except KeyboardInterrupt:
        pass
    missing: dict[str, Any] = {"status": "interrupted"}
    return sorted(({"point": wanted[k]} | rows.get(k, missing) for k in range(len(wanted))), key=_order)


def _rows(
    setup: JobSetup, wanted: Sequence[Mapping[str, Any]], fold: bool, executor: Executor | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number of the combination, its row) as they come in."""
    if executor is None:
        for number, values in enumerate(wanted):
            yield number, _row(setup, values, fold)
        return
    futures: dict[Future[dict[str, Any]], int] = {
        executor.submit(_row, setup, values, fold): number for number, values in enumerate(wanted)
    }
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _row(setup: JobSetup, values: Mapping[str, Any], fold: bool) -> dict[str, Any]:
    try:
        return summary(run_point(setup.with_values(values), fold=fold))
    except Deadlock as deadlock:
        if deadlock.result is None:
            raise
        return summary(deadlock.result)
    except BadInput as error:
        return {"status": "bad_input", "errors": [asdict(fault) for fault in error.faults]}


def _order(row: Mapping[str, Any]) -> tuple[int, float]:
    rank = {"ok": 0, "out_of_memory": 1, "bad_input": 3}.get(row["status"], 2)
    return rank, -(row.get("tokens_per_s_per_gpu") or row.get("samples_per_s_per_gpu") or 0.0)
