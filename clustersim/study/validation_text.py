"""A report of predictions beside measurements as text, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clustersim.analysis.report import wrapped
from clustersim.study.validated_row import ValidatedRow, grouped
from clustersim.study.validation import ValidatedFile, Validation
from clustersim.study.validation_lines import assumed_lines, in_percent, refused_lines, table_lines

__all__ = ["validation_text"]


def validation_text(report: Validation, by: str | None = None) -> str:
    """Text of a report: of one file by what its kind is told by, of several by file and family.

    Parameters
    ----------
    report : Validation
    by : str, optional
        a label to tell errors by in place of these, or several with commas between them
    """
    blocks = ["\n".join(_head(report))]
    if by is not None:
        titles = {label: title for file in report.files for label, title in file.kind.titles.items()}
        blocks.append(_table(f"by {titles.get(by, by)}", list(report.groups(by).items()), report))
    elif len(report.files) == 1:
        (file,) = report.files
        blocks += [
            _table(f"by {file.kind.titles.get(name, name)}", list(file.groups(name).items()), report)
            for name in file.kind.tables
        ]
    else:
        lines = [line for file in report.files for line in _by_family(file)]
        blocks.append(_table("by file and family", lines, report))
    totals = report.totals() if len(report.files) == 1 else _without_files(report)
    blocks.append(_table("totals", list(totals.items()), report))
    blocks += _intervals(report)
    predicted = [row for row in report.rows if row.predicted is not None]
    meaning = {word: text for file in report.files for word, text in file.kind.meaning.items()}
    blocks += ["\n".join(lines) for lines in (refused_lines(report.rows), assumed_lines(predicted, meaning)) if lines]
    blocks += [wrapped(f"warning: {note}") for note in report.notes]
    return "\n\n".join(blocks)


def _head(report: Validation) -> Iterator[str]:
    num_rows, num_predicted = len(report.rows), sum(row.predicted is not None for row in report.rows)
    name = report.files[0].file if len(report.files) == 1 else f"{len(report.files)} files"
    yield wrapped(f"{name}: {num_rows:,} rows, {num_predicted:,} predicted, {num_rows - num_predicted:,} refused")
    told = (
        "error = predicted / measured - 1 of what is published, in %; worst: that of the row on this line of the file"
    )
    if _has_sweeps(report):
        told += (
            "; rank: mean Spearman correlation within sweeps; regret: what the layout that is predicted best loses "
            "against the best measured one, in %"
        )
    yield wrapped(told)
    if report.left_out is not None:
        yield wrapped(f"left out: mean |error| under numbers calibrated without the row's {report.left_out}")


def _by_family(file: ValidatedFile) -> Iterator[tuple[str, Sequence[ValidatedRow]]]:
    """All rows of a file, then those of each family, which are named without the file's name."""
    yield file.file, file.rows
    for name, rows in file.groups("family").items():
        yield f"  {name.partition(':')[2] or name}", rows


def _without_files(report: Validation) -> dict[str, Sequence[ValidatedRow]]:
    """Totals that the table of files does not have."""
    files = {file.file for file in report.files}
    return {name: rows for name, rows in report.totals().items() if name not in files}


def _intervals(report: Validation) -> Iterator[str]:
    """How many measurements are in their intervals, where some have any."""
    told = [row for row in report.rows if row.inside is not None]
    if not told:
        return
    lines = [(name, _inside(rows)) for name, rows in grouped(told, "family").items()]
    yield "\n".join(
        [
            wrapped(
                "interval: 10th to 90th percentile of a prediction, from residuals of kernels, collectives and "
                "steps of other sources; of 10 rows 8 should be inside, in %"
            ),
            *table_lines("by family", f"{'rows':>6}{'inside':>8}", [*lines, ("all rows", _inside(told))]),
        ]
    )


def _inside(rows: Sequence[ValidatedRow]) -> str:
    return f"{len(rows):>6}{in_percent(sum(bool(row.inside) for row in rows) / len(rows)):>8}"


def _has_sweeps(report: Validation) -> bool:
    return any("layout" in row.labels for row in report.rows)


def _table(title: str, groups: Sequence[tuple[str, Sequence[ValidatedRow]]], report: Validation) -> str:
    head = f"{'rows':>5}{'pred.':>6}{'mean':>6}{'median':>7}{'p90':>6}{'bias':>7}{'worst':>7}{'line':>7}"
    head += f"{'rank':>6}{'regret':>7}" * _has_sweeps(report)
    head += f"{'left out':>9}" * (report.left_out is not None)
    return "\n".join(table_lines(title, head, [(name, _cells(rows, report)) for name, rows in groups]))


def _cells(rows: Sequence[ValidatedRow], report: Validation) -> str:
    found = report.errors(rows)
    worst = max((row for row in rows if row.error is not None), key=lambda row: abs(row.error or 0.0), default=None)
    cells = f"{found['num_rows']:>5}{found['num_predicted']:>6}"
    cells += f"{in_percent(found['mape']):>6}{in_percent(found['median_ape']):>7}{in_percent(found['p90_ape']):>6}"
    cells += f"{in_percent(found['bias'], '+'):>7}{in_percent(worst.error if worst else None, '+'):>7}"
    cells += f"{worst.line if worst else '-':>7}"
    if _has_sweeps(report):
        rank = found["rank_correlation"]
        cells += f"{'-' if rank is None else format(rank, '.2f'):>6}{in_percent(found['regret']):>7}"
    return cells + (f"{in_percent(found['left_out']['mape']):>9}" if report.left_out is not None else "")
