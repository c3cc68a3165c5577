"""Errors of rows as JSON has them: how large they are, the worst, and whether sweeps come in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clustersim.analysis.accuracy import Accuracy
from clustersim.study.steps.sweeps import Ranking
from clustersim.study.validated_row import ValidatedRow

__all__ = ["error_fields", "ranking"]

_LESS_IS_BETTER = ("iteration_time", "forward_backward_time")
_LEFT_OUT = ("mape", "median_ape", "p90_ape", "bias")


def error_fields(rows: Sequence[ValidatedRow], *, left_out: bool = False) -> dict[str, Any]:
    """Accuracy of rows, the row that is furthest off, the order of their sweeps, and how many are in their intervals.

    Parameters
    ----------
    rows : Sequence[ValidatedRow]
    left_out : bool
        also the accuracy under numbers that were calibrated without the rows
    """
    accuracy = Accuracy.of([row.error for row in rows])
    order = ranking(rows)
    found = accuracy.fields() | {
        "worst": None if accuracy.worst is None else rows[accuracy.worst].id,
        "num_sweeps": order.num_sweeps,
        "rank_correlation": order.rank_correlation,
        "regret": order.regret,
    }
    inside = [row.inside for row in rows if row.inside is not None]
    found["inside_interval"] = sum(inside) / len(inside) if inside else None
    if left_out:
        others = Accuracy.of([row.left_out_error for row in rows]).fields()
        found["left_out"] = {name: others[name] for name in _LEFT_OUT}
    return found


def ranking(rows: Sequence[ValidatedRow]) -> Ranking:
    """Order of the sweeps of layouts among rows: of one group, on as many GPUs, in one metric, of one model, batch and
    format.

    Rates are turned round, so that less is better in all. Rows without the label ``layout`` are in no sweep.
    """
    sweeps: dict[tuple[str, ...], list[ValidatedRow]] = {}
    for row in rows:
        if row.predicted is not None and row.measured is not None and row.labels.get("group"):
            names = ("group", "gpus", "model", "global_batch", "seq_len", "precision", "source")
            key = (row.file, row.metric, row.unit, *(row.labels.get(name, "") for name in names))
            sweeps.setdefault(key, []).append(row)
    found = []
    for (_, metric, *_), members in sweeps.items():
        if len({row.labels.get("layout", "") for row in members}) < 2:
            continue
        sign = 1 if metric in _LESS_IS_BETTER else -1
        found.append(
            ([(row.predicted or 1) ** sign for row in members], [(row.measured or 1) ** sign for row in members])
        )
    return Ranking.of(found)
