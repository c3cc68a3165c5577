"""Steps under cards that were calibrated without what the rows' own publishers measured of kernels and collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from clustersim.study.cards_without import cards_without, library_with, publishers
from clustersim.study.steps.predict import StepOutcome, predict

__all__ = ["without_own_source"]


def without_own_source(
    path: Path,
    outcomes: Sequence[StepOutcome],
    *,
    processes: int,
    progress: Callable[[float], None] | None = None,
) -> list[StepOutcome]:
    """Outcomes of all rows, those predicted again whose publisher's measurements are in the cards.

    Nothing is fitted to steps, so the others stay as they are: most publishers of steps gave no kernels and no
    collectives.

    Parameters
    ----------
    path : Path
        the rows' file
    outcomes : Sequence[StepOutcome]
        under the library's cards
    processes : int
        that simulate beside each other; at least two are started, which read the other cards
    progress : callable, optional
        called with the fraction of the publishers that are done
    """
    by = publishers(path)
    told = list(outcomes)
    names = sorted({by[outcome.row.line] for outcome in outcomes if outcome.step is not None})
    for done, name in enumerate(names, start=1):
        texts = cards_without(name)
        if texts:
            where = [i for i, one in enumerate(outcomes) if one.step is not None and by[one.row.line] == name]
            with library_with(texts):
                again = predict([outcomes[i].row for i in where], processes=max(processes, 2))
            for i, outcome in zip(where, again, strict=True):
                told[i] = outcome
        if progress is not None:
            progress(done / len(names))
    return told
