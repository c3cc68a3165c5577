"""A report of predicted kernels beside measured ones as text, readable at 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from clustersim.analysis.report import wrapped
from clustersim.study.kernels.report import KernelValidation, ValidatedKernel

__all__ = ["kernel_validation_text"]


def kernel_validation_text(report: KernelValidation, by: str | None = None) -> str:
    """Text of a report.

    Parameters
    ----------
    report : KernelValidation
    by : str, optional
        one label to tell errors by, in place of device and kind
    """
    predicted = [row for row in report.rows if row.predicted is not None]
    num_refused = len(report.rows) - len(predicted)
    blocks = [
        wrapped(f"{report.file}: {len(report.rows):,} rows, {len(predicted):,} predicted, {num_refused:,} refused")
        + "\n"
        + wrapped("error = predicted / measured - 1 of the time, in %")
    ]
    if report.left_out is not None:
        blocks[0] += "\n" + wrapped(f"left out: |error| under numbers calibrated without the row's {report.left_out}")
    titles = ((by,),) if by is not None else (("device", "kind"), ("device", "part"))
    blocks += ["\n".join(_table(", ".join(title), report.groups(*title), report)) for title in titles]
    reasons = Counter(row.reason for row in report.rows if row.reason)
    if reasons:
        blocks.append("\n".join(["refused", *(f"  {count:>4}  {reason}" for reason, count in reasons.items())]))
    blocks += [wrapped(f"warning: {note}") for note in report.notes]
    return "\n\n".join(blocks)


def _table(title: str, groups: Mapping[str, Sequence[ValidatedKernel]], report: KernelValidation) -> Iterator[str]:
    """A line for each group."""
    head = f"{'rows':>6}{'median':>8}{'p90':>8}{'bias':>8}"
    head += f"{'left out':>10}{'p90':>8}" if report.left_out is not None else ""
    room = max(len(title), *(len(name) + 2 for name in groups)) + 1 if groups else len(title) + 1
    yield f"{title:<{room}}{head}"
    for name, rows in groups.items():
        errors = np.array([row.error for row in rows if row.error is not None])
        cells = f"{len(rows):>6}{_size(errors)}{100 * np.median(errors):>+8.1f}"
        if report.left_out is not None:
            cells += "  " + _size(np.array([row.left_out_error for row in rows if row.left_out_error is not None]))
        yield f"{'  ' + name:<{room}}{cells}"


def _size(errors: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """Median and 90th percentile of |error|, in %."""
    return "".join(f"{100 * value:>8.1f}" for value in np.quantile(np.abs(errors), [0.5, 0.9]))
