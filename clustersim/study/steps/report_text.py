"""A report of predicted steps as text, readable at 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from clustersim.analysis.report import wrapped
from clustersim.study.steps.report import StepValidation, figures
from clustersim.study.validation import ValidatedRow

__all__ = ["step_validation_text"]

_TABLES = ("family", "source", "topology")
_WIDTH, _MOST_LINES = 80, 4


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
    blocks += ["\n".join(lines) for lines in (_refused(report.rows), _assumed(predicted)) if lines]
    blocks += [wrapped(f"warning: {note}") for note in report.notes]
    return "\n\n".join(blocks)


def _table(title: str, groups: Mapping[str, Sequence[ValidatedRow]]) -> Iterator[str]:
    """A line for each group, its name above it where that is long."""
    head = f"{'rows':>5}{'pred.':>6}{'mean':>6}{'median':>7}{'p90':>6}{'bias':>7}{'worst':>7}{'line':>5}"
    head += f"{'rank':>6}{'regret':>7}"
    room = _WIDTH - len(head)
    if len(title) >= room:
        yield title
    yield f"{title if len(title) < room else '':<{room}}{head}"
    for name, rows in groups.items():
        found = figures(rows)
        worst = next((row for row in rows if row.id == found["worst"]), None)
        cells = f"{found['num_rows']:>5}{found['num_predicted']:>6}"
        cells += f"{_percent(found['mape']):>6}{_percent(found['median_ape']):>7}{_percent(found['p90_ape']):>6}"
        cells += f"{_percent(found['bias'], '+'):>7}{_percent(worst.error if worst else None, '+'):>7}"
        cells += f"{worst.line if worst else '-':>5}"
        rank = found["rank_correlation"]
        cells += f"{'-' if rank is None else format(rank, '.2f'):>6}{_percent(found['regret']):>7}"
        shown = f"  {name or 'not stated'}"
        if len(shown) >= room:
            yield wrapped(shown)
            shown = ""
        yield f"{shown:<{room}}{cells}"


def _percent(value: float | None, sign: str = "") -> str:
    if value is None:
        return "-"
    percent = 100 * value
    return f"{percent:{sign}.1f}" if abs(percent) < 100 else f"{percent:{sign}.0f}" if abs(percent) < 1e4 else "> 1e4"


def _refused(rows: Sequence[ValidatedRow]) -> list[str]:
    """Reasons with their lines of the file."""
    by: dict[str, list[int]] = {}
    for row in rows:
        if row.status == "refused":
            by.setdefault(row.reason, []).append(row.line)
    told = []
    for reason, lines in sorted(by.items(), key=lambda item: -len(item[1])):
        shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", ..." if len(lines) > _MOST_LINES else "")
        told.append(wrapped(f"  {len(lines):>4}  {reason} (line{'s' * (len(lines) > 1)} {shown})"))
    return ["refused", *told] if told else []


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


def _assumed(rows: Sequence[ValidatedRow]) -> list[str]:
    """Kinds of assumptions and of how many rows they are; each row's own are in --json and --out."""
    count = Counter(kind for row in rows for kind in {text.partition(":")[0] for text in row.assumptions})
    told = [wrapped(f"  {count[kind]:>4}  {meaning}") for kind, meaning in _MEANING.items() if count[kind]]
    return ["assumed", *told] if told else []
