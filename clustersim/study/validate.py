"""Files of measured collectives, kernels or training steps -> predictions beside the measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.library.measurements import measurement_files
from clustersim.study.kernels.validate import KERNELS
from clustersim.study.row_kind import RowKind
from clustersim.study.steps.validate import STEPS
from clustersim.study.validate_collectives import COLLECTIVES
from clustersim.study.validation import ValidatedFile, Validation

__all__ = ["by_faults", "input_faults", "validate"]


def validate(
    path: str | Path | None = None,
    *,
    leave_out: str | None = None,
    family: str | None = None,
    processes: int = 1,
    progress: Callable[[float], None] | None = None,
) -> Validation:
    """Predict every row of a file of measurements with the shipped cards.

    Parameters
    ----------
    path : str or Path, optional
        a CSV of collectives, kernels or steps, known by its header, as :mod:`clustersim.readers.collective_rows`,
        :mod:`~clustersim.readers.kernel_rows` or :mod:`~clustersim.readers.step_rows` takes it; when left out, all that
        come with the library
    leave_out : {"group", "shape", "source"}, optional
        also give errors under numbers that were calibrated on all rows but those that have the row's value in this
        column: a group of collectives, a fifth of the shapes of kernels, a source of any; takes minutes
    family : str, optional
        rows of this one only
    processes : int
        of steps: that simulate beside each other
    progress : callable, optional
        called with the fraction of the work that is done

    Returns
    -------
    Validation
        all rows, or those of the family: predicted, or refused with a reason

    Raises
    ------
    BadInput
        with every fault of the files, of ``leave_out`` and of ``family``
    """
    faults = input_faults(path, leave_out, family)
    if faults:
        raise BadInput(faults)
    chosen = [(of, _kind(of)) for of in _paths(path)]
    if family is not None:
        chosen = [(of, kind) for of, kind in chosen if family in kind.families(of)]
    files = []
    for number, (of, kind) in enumerate(chosen):
        rows, notes = kind.predict(
            of,
            leave_out=leave_out if leave_out in kind.leave_out else None,
            family=family,
            processes=processes,
            progress=_part(progress, number, len(chosen)),
        )
        name = of.name if path is None else str(path)
        files.append(
            ValidatedFile(file=name, kind=kind, rows=tuple(replace(row, file=name) for row in rows), notes=notes)
        )
    return Validation(files=tuple(files), left_out=leave_out)


def input_faults(
    path: str | Path | None = None, leave_out: str | None = None, family: str | None = None
) -> list[Fault]:
    """What :func:`validate` would refuse, without its work."""
    paths = _paths(path)
    known = [(of, kind) for of in paths for kind in _KINDS if kind.detect(of)]
    faults = _leave_out_faults(leave_out, [kind for _, kind in known] or [COLLECTIVES])
    wrong = []
    for of in paths:
        kind = _kind(of)
        found = kind.check(of, leave_out if leave_out in kind.leave_out else None)
        if found and (of, kind) not in known and of.is_file():
            rule = "must be measured collectives, kernels or training steps"
            wrong.append(Fault(file=str(of), key="file", value=of.name, rule=rule))
        wrong += found
    faults += wrong
    if family is None or wrong:
        return faults
    names = list(dict.fromkeys(name for of, kind in known for name in kind.families(of)))
    if family not in names:
        rule = f"must be a family of {', '.join(of.name for of in paths)}: {', '.join(names)}"
        faults.append(Fault(key="family", value=family, rule=rule, nearest=nearest_name(family, names)))
    return faults


def by_faults(path: str | Path | None, by: str | None) -> list[Fault]:
    """What is wrong with the labels to tell errors by: each must be one of all rows of some file."""
    if by is None:
        return []
    kinds = [_kind(of) for of in _paths(path)]
    if any(set(by.split(",")) <= set(kind.labels) for kind in kinds):
        return []
    labels = list(dict.fromkeys(label for kind in kinds for label in kind.labels))
    wrong = [name for name in by.split(",") if name not in labels]
    if not wrong:
        return [Fault(key="--by", value=by, rule="must be labels of one kind of rows")]
    rule = f"must be one of {', '.join(labels)}, or several with commas between them"
    return [Fault(key="--by", value=name, rule=rule, nearest=nearest_name(name, labels)) for name in wrong]


_KINDS = (KERNELS, STEPS, COLLECTIVES)


def _paths(path: str | Path | None) -> tuple[Path, ...]:
    return measurement_files() if path is None else (Path(path),)


def _kind(path: Path) -> RowKind:
    """Of a file; what no kind knows is read as collectives, which say what is missing."""
    return next((kind for kind in _KINDS if kind.detect(path)), COLLECTIVES)


def _leave_out_faults(column: str | None, kinds: Sequence[RowKind]) -> list[Fault]:
    if column is None:
        return []
    columns = list(dict.fromkeys(name for kind in kinds for name in kind.leave_out))
    if column not in columns:
        rule = f"must be one of {', '.join(columns)}"
        return [Fault(key="leave_out", value=column, rule=rule, nearest=nearest_name(column, columns))]
    if find_spec("scipy") is None:
        return [Fault(key="leave_out", value=column, rule="needs scipy, which is not installed")]
    return []


def _part(progress: Callable[[float], None] | None, number: int, of: int) -> Callable[[float], None] | None:
    """Progress of one file as that of all."""
    return None if progress is None else lambda done: progress((number + done) / of)
