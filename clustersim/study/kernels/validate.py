"""Measured kernels beside their predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.readers import kernel_rows
from clustersim.readers.kernel_rows import KernelRow
from clustersim.study.kernels.calibrate_files import start_of
from clustersim.study.kernels.calibration import left_out_errors, part_of
from clustersim.study.kernels.measured import MeasuredKernel, UnusedKernel, place
from clustersim.study.row_kind import RowKind
from clustersim.study.validated_row import ValidatedRow

__all__ = ["KERNELS", "NO_NUMBERS"]

NO_NUMBERS = "no numbers of such a kernel on the device"
"""Why a row is refused, beside :data:`clustersim.study.kernels.measured.REASONS`."""

_LABELS = ("family", "source", "hardware", "group", "confidence")
_PLACED = ("device", "part", "kind", "form", "dtype", "provenance")
_ORIGINS = ("measured", "interpolated", "modelled", "assumed")
_MEANING = {
    "card": "a device's card stands for the hardware as published",
    "borrowed": "numbers of such a kernel are not measured on the device: out of domain",
}


def _check(path: Path, leave_out: str | None) -> list[Fault]:
    try:
        rows, _ = kernel_rows.read(path)
    except BadInput as error:
        return list(error.faults)
    rule = "must be given where sources are left out"
    return [
        Fault(file=str(path), key=f"line {row.line}, column source", value="", rule=rule)
        for row in rows
        if leave_out == "source" and not row.source
    ]


def _families(path: Path) -> list[str]:
    return list(dict.fromkeys(_family(path.stem, row) for row in kernel_rows.read(path)[0]))


def _family(stem: str, row: KernelRow) -> str:
    return f"{stem}:{row.source or 'no source'}"


def _predict(
    path: Path,
    *,
    leave_out: str | None,
    family: str | None,
    processes: int,
    progress: Callable[[float], None] | None,
) -> tuple[tuple[ValidatedRow, ...], tuple[str, ...]]:
    """All rows on one process; those of other families calibrate, where something is left out."""
    del processes
    rows, notes = kernel_rows.read(path)
    placed, unused = place(rows)
    errors: list[float | None] = [None] * len(placed)
    if leave_out is not None:
        errors = _left_out(placed, leave_out, progress)
    report = [_validated(path.stem, row, error) for row, error in zip(placed, errors, strict=True)]
    report += [_refused(path.stem, one) for one in unused]
    report.sort(key=lambda row: row.line)
    return tuple(row for row in report if family in (None, row.family)), tuple(notes)


def _left_out(
    placed: Sequence[MeasuredKernel], what: str, progress: Callable[[float], None] | None
) -> list[float | None]:
    """Errors of times by device: a fifth of its shapes, or a source, predicted from the others."""
    found: NDArray[np.float64] = np.empty(len(placed))
    devices: dict[str, list[int]] = {}
    for i, row in enumerate(placed):
        devices.setdefault(row.gpu.name, []).append(i)
    for done, (name, index) in enumerate(devices.items(), start=1):
        of = [placed[i] for i in index]
        start = start_of(name, {part_of(row) for row in of})
        found[index] = left_out_errors(of, start, by=what)
        if progress is not None:
            progress(done / len(devices))
    return list(found.tolist())


def _validated(stem: str, row: MeasuredKernel, left_out: float | None) -> ValidatedRow:
    try:
        costs = [kernel_cost(kernel, row.gpu) for kernel in row.kernels]
    except KeyError:
        return _refused(stem, UnusedKernel(row=row.row, reason=NO_NUMBERS))
    named = costs[row.kernels.index(row.kernel)]
    assumptions = [f"card: {row.gpu.name} stands for {row.row.hardware}"]
    if named.provenance == "assumed":
        assumptions.append(f"borrowed: {part_of(row)} of {row.gpu.name} is not measured")
    return ValidatedRow(
        id=row.row.id or f"line {row.row.line}",
        line=row.row.line,
        family=_family(stem, row.row),
        source=row.row.source,
        metric=row.row.metric,
        unit=row.row.unit,
        measured=row.row.value,
        predicted=row.row.value * _published(row, sum(cost.seconds for cost in costs) / row.seconds),
        in_domain=named.provenance != "assumed",
        coverage={name: float(name == named.provenance) for name in _ORIGINS},
        assumptions=tuple(assumptions),
        labels=_published_labels(row.row)
        | {
            "device": row.gpu.name,
            "part": part_of(row),
            "kind": row.kind,
            "form": row.kernel.form or "usual",
            "dtype": row.kernel.dtype if row.kind != "memory" else row.row.dtype,
            "provenance": named.provenance,
        },
        left_out_error=None if left_out is None else _published(row, 1 + left_out) - 1,
    )


def _published(row: MeasuredKernel, ratio: float) -> float:
    """Ratio of what is published, which is a time or a rate, from that of times."""
    return ratio if row.row.unit == "ms" else 1 / ratio


def _refused(stem: str, one: UnusedKernel) -> ValidatedRow:
    row = one.row
    return ValidatedRow(
        id=row.id or f"line {row.line}",
        line=row.line,
        family=_family(stem, row),
        source=row.source,
        metric=row.metric,
        unit=row.unit,
        measured=row.value,
        reason=one.reason,
        detail=f"{row.op} {row.dtype} on {row.hardware}",
        labels=_published_labels(row) | dict.fromkeys(_PLACED, "not placed"),
    )


def _published_labels(row: KernelRow) -> dict[str, str]:
    return {"hardware": row.hardware, "group": row.group, "confidence": row.confidence}


def _totals(rows: Sequence[ValidatedRow]) -> dict[str, Sequence[ValidatedRow]]:
    """All rows, and those by kind of kernel that are in the calibrated domain."""
    found: dict[str, Sequence[ValidatedRow]] = {"all rows": rows}
    for kind in ("gemm", "attention", "memory"):
        found[f"{kind}, measured devices"] = [row for row in rows if row.labels["kind"] == kind and row.in_domain]
    return found


KERNELS = RowKind(
    name="kernels",
    labels=(*_LABELS, *_PLACED),
    tables=("device,kind", "device,part"),
    titles={"device,kind": "device, kind", "device,part": "device, part"},
    meaning=_MEANING,
    leave_out=("shape", "source"),
    detect=kernel_rows.detect,
    check=_check,
    families=_families,
    predict=_predict,
    totals=_totals,
)
"""Times and rates of single kernels, or a few in a row, on a device of the library."""
