"""``clustersim validate``: predictions beside measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clustersim.cli.output import OK, num_cores, print_json, progress

if TYPE_CHECKING:
    from clustersim.faults import Fault
    from clustersim.study.steps.report import StepValidation
    from clustersim.study.validation import Validation

__all__ = ["validate"]


def validate(
    *,
    data: Path | None = None,
    by: str | None = None,
    family: str | None = None,
    leave_out: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    out: Path | None = None,
) -> int:
    """Predict measured collectives, kernels or training steps and tell how far off the predictions are.

    Parameters
    ----------
    data
        a CSV: of collectives with the columns hardware, gpus, collective, size_bytes and time_us; of kernels with
        hardware, op, dtype, m, n, k, metric, value and unit; of training steps with source, hardware, gpus, metric,
        value and unit; and others that say more
    by
        one table in place of several: source, family, topology, hardware, group, confidence, gpus or network; of
        collectives also collective, size, communication, transport, algo, nccl_version or nodes; of steps also
        profile, model, precision, how_obtained, year, tp, pp, cp, ep, recompute or fits; of kernels device, part,
        kind, form, dtype, source, hardware, group, confidence or provenance
    family
        rows of this family only
    leave_out
        of collectives, group or source: also the error of each under numbers calibrated on all others; takes minutes.
        Of kernels: shape
    as_json
        print one JSON object
    out
        a folder for the rows as a CSV and a figure of them
    """
    from clustersim.cli.validate_kernels import validate_kernels
    from clustersim.faults import BadInput, Fault
    from clustersim.readers import kernel_rows
    from clustersim.study.validate import input_faults
    from clustersim.study.validate import validate as validated

    if data is not None and kernel_rows.detect(data):
        if family is not None:
            raise BadInput(
                [Fault(key="--family", value=family, rule="has no effect on kernels: --by device tells them apart")]
            )
        return validate_kernels(data, by=by, leave_out=leave_out, as_json=as_json, out=out)
    faults = _faults(data, by, out)
    if data is None or faults:
        raise BadInput([*faults, *([] if data is None else input_faults(data, leave_out, family))])
    with progress("jobs, or calibrations without a group, %", total=100) as at:
        report = validated(data, leave_out=leave_out, family=family, processes=num_cores(), progress=_in_percent(at))
    if out is not None:
        written = _write(report, out)
    if as_json:
        print_json(report.answer(by))
        return OK
    print(_text(report, by))
    if out is not None:
        print(f"\nwritten to {out}: {', '.join(written)}")
    return OK


def _text(report: Validation | StepValidation, by: str | None) -> str:
    from clustersim.study.steps.report import StepValidation
    from clustersim.study.steps.report_text import step_validation_text
    from clustersim.study.validation_text import validation_text

    return step_validation_text(report, by) if isinstance(report, StepValidation) else validation_text(report, by)


def _faults(data: Path | None, by: str | None, out: Path | None) -> list[Fault]:
    """What is wrong with the command beside the file."""
    from clustersim.faults import Fault, nearest_name
    from clustersim.readers import step_rows
    from clustersim.study.steps.report import LABELS as STEP_LABELS
    from clustersim.study.validate import LABELS
    from clustersim.trace.formats.folder import refuse_folder

    faults = []
    if data is None:
        rule = "must be given: a CSV of measured collectives or of measured training steps"
        faults.append(Fault(key="--data", value=None, rule=rule))
    labels = STEP_LABELS if data is not None and step_rows.detect(data) else LABELS
    if by is not None and by not in labels:
        rule = f"must be one of {', '.join(labels)}"
        faults.append(Fault(key="--by", value=by, rule=rule, nearest=nearest_name(by, labels)))
    return [*faults, *(refuse_folder(out) if out is not None else ())]


def _in_percent(at: Callable[[float], None] | None) -> Callable[[float], None] | None:
    return None if at is None else lambda fraction: at(100 * fraction)


def _write(report: Validation | StepValidation, out: Path) -> list[str]:
    """Write the folder; names of what stands in it."""
    import json

    from clustersim import plot
    from clustersim.study.figure import save
    from clustersim.study.validation import Validation
    from clustersim.trace.formats.folder import MARK, fresh, versions

    table = report.table()
    names = ["rows.csv", MARK]
    with fresh(out) as place:
        table.to_csv(place / "rows.csv", index=False)
        if isinstance(report, Validation) and (table["status"] == "predicted").any():
            save(lambda: plot.accuracy(table)[0], place / "accuracy.png")
            names.insert(0, "accuracy.png")
        (place / MARK).write_text(json.dumps(versions(), indent=2) + "\n")
    return names
