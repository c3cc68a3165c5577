"""A report of predictions beside measurements as text, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from clustersim.analysis.accuracy import Accuracy
from clustersim.analysis.report import wrapped
from clustersim.study.validated_row import ValidatedRow
from clustersim.study.validation import Validation
from clustersim.study.validation_lines import assumed_lines, in_percent, refused_lines, table_lines

__all__ = ["TABLES", "validation_text"]

TABLES = ("source", "collective", "size", "communication")
"""What errors are told by unless the user asks for something else."""

_TITLES = {
    "size": "size (1 kB = 1000 B)",
    "communication": "communication card (hardware family)",
}


def validation_text(report: Validation, by: str | None = None) -> str:
    """Text of a report.

    Parameters
    ----------
    report : Validation
    by : str, optional
        one label to tell errors by, in place of the tables of :data:`TABLES`
    """
    predicted = [row for row in report.rows if row.status == "predicted"]
    num_refused = len(report.rows) - len(predicted)
    blocks = [
        wrapped(f"{report.file}: {len(report.rows):,} rows, {len(predicted):,} predicted, {num_refused:,} refused")
        + "\n"
        + wrapped("error = predicted / measured - 1 of the time, in %; worst: that of the row on this line of the file")
    ]
    if report.left_out is not None:
        what = f"left out: mean |error| under numbers calibrated without the row's {report.left_out}"
        blocks[0] += f"\n{wrapped(what)}"
    for name in (by,) if by is not None else TABLES:
        title = _TITLES.get(name, name)
        blocks.append("\n".join(_table(f"by {title}", report.groups(name), report)))
    blocks.append("\n".join(_table("totals", report.totals(), report)))
    blocks += ["\n".join(lines) for lines in (refused_lines(report.rows), assumed_lines(predicted, _MEANING)) if lines]
    blocks += [wrapped(f"warning: {note}") for note in report.notes]
    return "\n\n".join(blocks)


def _table(title: str, groups: Mapping[str, Sequence[ValidatedRow]], report: Validation) -> Iterator[str]:
    left_out = report.left_out is not None
    head = f"{'rows':>5}{'pred.':>6}{'mean':>7}{'median':>7}{'p90':>7}{'bias':>8}{'worst':>8}{'line':>6}"
    head += f"{'left out':>9}" * left_out
    return table_lines(title, head, {name: _cells(rows, left_out=left_out) for name, rows in groups.items()})


def _cells(rows: Sequence[ValidatedRow], *, left_out: bool) -> str:
    figures = Accuracy.of([row.error for row in rows])
    cells = f"{figures.num_rows:>5}{figures.num_predicted:>6}" + "".join(
        f"{in_percent(value):>7}" for value in (figures.mape, figures.median_ape, figures.p90_ape)
    )
    worst = None if figures.worst is None else rows[figures.worst]
    cells += f"{in_percent(figures.bias, '+'):>8}{in_percent(worst.error if worst else None, '+'):>8}"
    cells += f"{worst.line if worst else '-':>6}"
    if left_out:
        cells += f"{in_percent(Accuracy.of([row.left_out_error for row in rows]).mape):>9}"
    return cells


_MEANING = {
    "card": "a card stands for the hardware as published",
    "library": "what NCCL or RCCL costs on such nodes is assumed: out of domain",
    "placement": "how many ranks share a node is not given",
    "network": "the network between nodes is the card's, close to what is published or not",
    "unknown network": "the network is not known, that of the card is taken: out of domain",
    "clock": "the program's clock holds time of the host as well",
    "algorithm": "the algorithm is the one that the row says it ran",
}
