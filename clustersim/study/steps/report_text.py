"""A report of predicted steps as text, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from clustersim.analysis.report import wrapped
from clustersim.study.steps.report import StepValidation, figures
from clustersim.study.validated_row import ValidatedRow
from clustersim.study.validation_lines import assumed_lines, in_percent, refused_lines, table_lines

__all__ = ["step_validation_text"]

_TABLES = ("family", "source", "topology")


def step_validation_text(report: StepValidation, by: str | None = None) -> str:
    """Text of a report.

    Parameters
    ----------
    report : StepValidation
    by : str, optional
        one label to tell errors by, in place of family, source and topology
    """
    predicted = [row for row in report.rows if row.predicted is not None]
    num_refused = len(report.rows) - len(predicted)
    blocks = [
        wrapped(f"{report.file}: {len(report.rows):,} rows, {len(predicted):,} predicted, {num_refused:,} refused")
        + "\n"
        + wrapped(
            "error = predicted / measured - 1 of the published metric, in %; worst: that of the row on this line of "
            "the file; rank: mean Spearman correlation within sweeps; regret: what the layout that is predicted best "
            "loses against the best measured one, in %"
        )
    ]
    tables = (by,) if by is not None else _TABLES
    blocks += ["\n".join(_table(f"by {name}", report.groups(name))) for name in tables]
    blocks.append("\n".join(_table("totals", report.totals())))
    blocks += ["\n".join(lines) for lines in (refused_lines(report.rows), assumed_lines(predicted, _MEANING)) if lines]
    blocks += [wrapped(f"warning: {note}") for note in report.notes]
    return "\n\n".join(blocks)


def _table(title: str, groups: Mapping[str, Sequence[ValidatedRow]]) -> Iterator[str]:
    head = f"{'rows':>5}{'pred.':>6}{'mean':>6}{'median':>7}{'p90':>6}{'bias':>7}{'worst':>7}{'line':>5}"
    head += f"{'rank':>6}{'regret':>7}"
    return table_lines(title, head, {name: _cells(rows) for name, rows in groups.items()})


def _cells(rows: Sequence[ValidatedRow]) -> str:
    found = figures(rows)
    worst = next((row for row in rows if row.id == found["worst"]), None)
    cells = f"{found['num_rows']:>5}{found['num_predicted']:>6}"
    cells += f"{_percent(found['mape']):>6}{_percent(found['median_ape']):>7}{_percent(found['p90_ape']):>6}"
    cells += f"{_percent(found['bias'], '+'):>7}{_percent(worst.error if worst else None, '+'):>7}"
    cells += f"{worst.line if worst else '-':>5}"
    rank = found["rank_correlation"]
    return cells + f"{'-' if rank is None else format(rank, '.2f'):>6}{_percent(found['regret']):>7}"


_percent = partial(in_percent, width=5)

_MEANING = {
    "card": "a card stands for the hardware as published",
    "profile": "a software profile stands for what the source ran",
    "model": "a card, or a kind of model, gives what the row's columns do not",
    "network": "the network is not known, that of the card is taken",
    "precision": "the number format is not published, or its name means more than one",
    "batch": "the micro-batch is not published, or the whole batch is one",
    "recompute": "what is recomputed is not published, or not exactly what is simulated",
    "sharding": "how the optimizer state is split is not published, or not exactly what is simulated",
    "schedule": "chunks of the pipeline are not published",
    "overlap": "the row says that overlap was off",
    "gpus": "some GPUs of the row are not used",
    "memory": "more memory is held than there is; the time is that without the limit",
    "note": "what the simulation itself splits, pads or leaves out",
}
