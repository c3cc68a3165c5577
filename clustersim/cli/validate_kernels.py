"""``clustersim validate`` of measured kernels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clustersim.cli.output import OK, print_json, progress

if TYPE_CHECKING:
    from clustersim.faults import Fault

__all__ = ["validate_kernels"]


def validate_kernels(data: Path, *, by: str | None, leave_out: str | None, as_json: bool, out: Path | None) -> int:
    """Predict measured kernels and tell how far off the predictions are; parameters as of the command."""
    import json

    from clustersim.faults import BadInput
    from clustersim.study.kernels.report import input_faults
    from clustersim.study.kernels.report import validate_kernels as validated
    from clustersim.study.kernels.report_text import kernel_validation_text
    from clustersim.trace.formats.folder import MARK, fresh, versions

    if faults := _faults(by, out):
        raise BadInput([*faults, *input_faults(data, leave_out)])
    with progress("calibrations without a shape, %", total=100) as at:
        report = validated(data, leave_out=leave_out, progress=None if at is None else lambda done: at(100 * done))
    if out is not None:
        with fresh(out) as place:
            report.table().to_csv(place / "rows.csv", index=False)
            (place / MARK).write_text(json.dumps(versions(), indent=2) + "\n")
    if as_json:
        print_json(report.answer(by))
        return OK
    print(kernel_validation_text(report, by))
    if out is not None:
        print(f"\nwritten to {out}: rows.csv, {MARK}")
    return OK


def _faults(by: str | None, out: Path | None) -> list[Fault]:
    """What is wrong with the command beside the file."""
    from clustersim.faults import Fault, nearest_name
    from clustersim.study.kernels.report import LABELS
    from clustersim.trace.formats.folder import refuse_folder

    faults = []
    if by is not None and by not in LABELS:
        rule = f"must be one of {', '.join(LABELS)}"
        faults.append(Fault(key="--by", value=by, rule=rule, nearest=nearest_name(by, LABELS)))
    return [*faults, *(refuse_folder(out) if out is not None else ())]
