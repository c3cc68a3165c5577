"""Predictions of kernels beside measurements, by device and kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from clustersim.analysis.accuracy import Accuracy
from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.readers import kernel_rows
from clustersim.study.kernels.calibrate_files import start_of
from clustersim.study.kernels.calibration import left_out_errors, part_of
from clustersim.study.kernels.measured import MeasuredKernel, UnusedKernel, place

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LABELS", "LEFT_OUT", "KernelValidation", "ValidatedKernel", "input_faults", "validate_kernels"]

LABELS = ("device", "part", "kind", "form", "dtype", "source", "hardware", "group", "confidence", "provenance")
"""What errors can be told by: the GPU's card, the part of its kernel card, and what the row says of itself."""

LEFT_OUT = ("shape",)
"""What can be left out of a calibration."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ValidatedKernel:
    """One measurement and what is predicted for it.

    Parameters
    ----------
    line : int
        of the file
    id : str
    measured : float, optional
        [s]; None where it was refused
    predicted : float, optional
        [s]
    reason : str
        why it was refused: one of :data:`clustersim.study.kernels.measured.REASONS`, or the device's card lacks the
        kernel
    labels : Mapping[str, str]
        by :data:`LABELS`
    left_out_error : float, optional
        under numbers that were calibrated without its shape
    """

    line: int
    id: str
    measured: float | None = None
    predicted: float | None = None
    reason: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    left_out_error: float | None = None

    @property
    def error(self) -> float | None:
        """predicted/measured - 1, as a fraction; None when refused."""
        return None if self.predicted is None or self.measured is None else self.predicted / self.measured - 1

    def fields(self) -> dict[str, Any]:
        """As JSON has it."""
        status = "refused" if self.predicted is None else "predicted"
        names = ("line", "id", "measured", "predicted", "error", "reason", "left_out_error")
        return {name: getattr(self, name) for name in names} | {"status": status, "labels": dict(self.labels)}


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelValidation:
    """Rows of one file, in its order.

    Parameters
    ----------
    file : str
    rows : tuple[ValidatedKernel, ...]
    notes : tuple[str, ...]
        what of the file was not read
    left_out : str, optional
        one of :data:`LEFT_OUT`
    """

    file: str
    rows: tuple[ValidatedKernel, ...]
    notes: tuple[str, ...] = ()
    left_out: str | None = None

    def groups(self, *by: str) -> dict[str, list[ValidatedKernel]]:
        """Predicted rows by one or several labels."""
        found: dict[str, list[ValidatedKernel]] = {}
        for row in self.rows:
            if row.predicted is not None:
                found.setdefault(" ".join(row.labels[name] for name in by), []).append(row)
        return dict(sorted(found.items()))

    def figures(self, rows: Sequence[ValidatedKernel]) -> dict[str, Any]:
        """Errors of rows, with those of the left-out ones where they were asked for."""
        figures = Accuracy.of([row.error for row in rows]).fields()
        if self.left_out is not None:
            figures["left_out"] = Accuracy.of([row.left_out_error for row in rows]).fields()
        return figures

    def table(self) -> pd.DataFrame:
        """One row a measurement: its fields, labels as columns of their own."""
        import pandas as pd

        records = [{k: v for k, v in row.fields().items() if k != "labels"} | dict(row.labels) for row in self.rows]
        return pd.DataFrame(records)

    def answer(self, by: str | None = None) -> dict[str, Any]:
        """The fields of ``validate --json``."""
        named = {"device, kind": self.groups("device", "kind"), "device, part": self.groups("device", "part")}
        if by is not None:
            named[by] = self.groups(by)
        num_predicted = sum(row.predicted is not None for row in self.rows)
        return {
            "file": self.file,
            "num_rows": len(self.rows),
            "num_predicted": num_predicted,
            "num_refused": len(self.rows) - num_predicted,
            "by": {key: {name: self.figures(rows) for name, rows in of.items()} for key, of in named.items()},
            "rows": [row.fields() for row in self.rows],
            "warnings": list(self.notes),
        }


def validate_kernels(
    path: str | Path, *, leave_out: str | None = None, progress: Callable[[float], None] | None = None
) -> KernelValidation:
    """Predict every row of a file of measured kernels with the shipped cards.

    Parameters
    ----------
    path : str or Path
        a CSV as :func:`clustersim.readers.kernel_rows.read` takes it
    leave_out : {"shape"}, optional
        also give errors of each shape under numbers calibrated on other shapes, a fifth of them at a time
    progress : callable, optional
        called with the fraction of the devices that ``leave_out`` is done with

    Raises
    ------
    BadInput
        with every fault of the file and of ``leave_out``
    """
    faults = _leave_out_faults(leave_out)
    try:
        rows, notes = kernel_rows.read(path)
    except BadInput as error:
        raise BadInput([*faults, *error.faults]) from None
    if faults:
        raise BadInput(faults)
    placed, unused = place(rows)
    left_out = _left_out(placed, progress) if leave_out is not None else [None] * len(placed)
    report = [_validated(row, error) for row, error in zip(placed, left_out, strict=True)]
    report += [_refused(row) for row in unused]
    report.sort(key=lambda row: row.line)
    return KernelValidation(file=str(path), rows=tuple(report), notes=tuple(notes), left_out=leave_out)


def input_faults(path: str | Path, leave_out: str | None = None) -> list[Fault]:
    """What :func:`validate_kernels` would refuse, without its work."""
    try:
        kernel_rows.read(path)
    except BadInput as error:
        return [*_leave_out_faults(leave_out), *error.faults]
    return _leave_out_faults(leave_out)


def _leave_out_faults(what: str | None) -> list[Fault]:
    if what is None:
        return []
    if what not in LEFT_OUT:
        rule, near = f"must be one of {', '.join(LEFT_OUT)}", nearest_name(what, LEFT_OUT) or LEFT_OUT[0]
        return [Fault(key="leave_out", value=what, rule=rule, nearest=near)]
    from importlib.util import find_spec

    missing = find_spec("scipy") is None
    return [Fault(key="leave_out", value=what, rule="needs scipy, which is not installed")] if missing else []


def _left_out(placed: Sequence[MeasuredKernel], progress: Callable[[float], None] | None) -> list[float | None]:
    found: NDArray[np.float64] = np.empty(len(placed))
    devices = list(_by_device(placed))
    for done, index in enumerate(devices, start=1):
        of = [placed[i] for i in index]
        found[index] = left_out_errors(of, start_of(of[0].gpu.name, {part_of(row) for row in of}))
        if progress is not None:
            progress(done / len(devices))
    return list(found.tolist())


def _by_device(placed: Sequence[MeasuredKernel]) -> Iterator[list[int]]:
    found: dict[str, list[int]] = {}
    for i, row in enumerate(placed):
        found.setdefault(row.gpu.name, []).append(i)
    yield from found.values()


def _validated(row: MeasuredKernel, left_out: float | None) -> ValidatedKernel:
    try:
        costs = [kernel_cost(kernel, row.gpu) for kernel in row.kernels]
    except KeyError:
        return ValidatedKernel(line=row.row.line, id=row.row.id, reason="no numbers of such a kernel on the device")
    named = costs[row.kernels.index(row.kernel)]
    return ValidatedKernel(
        line=row.row.line,
        id=row.row.id,
        measured=row.seconds,
        predicted=sum(cost.seconds for cost in costs),
        labels={
            "device": row.gpu.name,
            "part": part_of(row),
            "kind": row.kind,
            "form": row.kernel.form or "usual",
            "dtype": row.kernel.dtype if row.kind != "memory" else row.row.dtype,
            "source": row.row.source,
            "hardware": row.row.hardware,
            "group": row.row.group,
            "confidence": row.row.confidence,
            "provenance": named.provenance,
        },
        left_out_error=left_out,
    )


def _refused(one: UnusedKernel) -> ValidatedKernel:
    return ValidatedKernel(line=one.row.line, id=one.row.id, reason=one.reason)
