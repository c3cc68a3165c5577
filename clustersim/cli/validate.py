"""``clustersim validate``: predictions beside measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clustersim.cli.output import OK, num_cores, print_json, progress, written_text

if TYPE_CHECKING:
    from clustersim.faults import Fault
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
        a CSV in place of all that come with clustersim: of collectives with the columns hardware, gpus, collective,
        size_bytes and time_us; of kernels with hardware, op, dtype, m, n, k, metric, value and unit; of training steps
        with source, hardware, gpus, metric, value and unit; and others that say more
    by
        one table in place of several, by one label or several with commas between them: source, family, hardware,
        group, confidence or network; of collectives also topology, collective, size, communication, transport, algo,
        nccl_version, nodes or gpus; of steps also topology, profile, model, precision, how_obtained, year, gpus, tp,
        pp, cp, ep, recompute or fits; of kernels device, part, kind, form, dtype or provenance
    family
        rows of this family only
    leave_out
        source; of collectives also group, of kernels shape: also the errors under numbers calibrated on all others;
        takes minutes
    as_json
        print one JSON object
    out
        a folder for the rows as a CSV and figures of them
    """
    from clustersim.faults import BadInput
    from clustersim.study.validate import input_faults
    from clustersim.study.validate import validate as validated
    from clustersim.study.validation_text import validation_text

    faults = _faults(data, by, out) + input_faults(data, leave_out, family)
    if faults:
        raise BadInput(faults)
    with progress("jobs and calibrations, %", total=100) as at:
        report = validated(data, leave_out=leave_out, family=family, processes=num_cores(), progress=_in_percent(at))
    if out is not None:
        written = _write(report, out)
    if as_json:
        print_json(report.answer(by))
        return OK
    print(validation_text(report, by))
    if out is not None:
        print(f"\n{written_text(out, written)}")
    return OK


def _faults(data: Path | None, by: str | None, out: Path | None) -> list[Fault]:
    """What is wrong with the command beside the files."""
    from clustersim.study.validate import by_faults
    from clustersim.trace.formats.folder import refuse_folder

    return [*by_faults(data, by), *(refuse_folder(out) if out is not None else ())]


def _in_percent(at: Callable[[float], None] | None) -> Callable[[float], None] | None:
    return None if at is None else lambda fraction: at(100 * fraction)


def _write(report: Validation, out: Path) -> list[str]:
    """Write the folder; names of what stands in it."""
    import json

    from clustersim.study.accuracy_figures import accuracy_figures
    from clustersim.trace.formats.folder import MARK, fresh, versions

    with fresh(out) as place:
        names = [path.name for path in accuracy_figures(report, place)]
        report.table().to_csv(place / "rows.csv", index=False)
        (place / MARK).write_text(json.dumps(versions(), indent=2) + "\n")
    return [*names, "rows.csv", MARK]
