"""``clustersim export``: the trace of a run for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from clustersim.cli.output import OK

__all__ = ["export"]


def export(
    run: str,
    /,
    *,
    to: Annotated[Literal["chrome", "hta", "parquet"], Parameter(name="--format")],
    out: Path,
) -> int:
    """Write the trace of a run in another format.

    Parameters
    ----------
    run
        a run folder, or a job, which is simulated
    to
        chrome: one file for ui.perfetto.dev; hta: a folder of Kineto traces; parquet: one table
    out
        the file, or for hta the folder
    """
    from clustersim.faults import BadInput, Fault
    from clustersim.study.run_folder import open_run
    from clustersim.trace.formats import chrome, parquet
    from clustersim.trace.formats.folder import fresh, refuse_folder
    from clustersim.trace.formats.whole_file import refuse_file

    faults = []
    if to == "hta":
        faults = refuse_folder(out)
        if out.is_dir() and any(out.iterdir()):
            faults = [Fault(key="--out", value=str(out), rule="must be new or empty")]
    else:
        faults = refuse_file(out, f"trace.{_SUFFIX[to]}")
    if faults:
        raise BadInput(faults)
    trace = open_run(run).trace
    if to == "hta":
        with fresh(out) as place:
            chrome.write_folder(trace, place)
    elif to == "chrome":
        chrome.write(trace, out)
    else:
        parquet.write(trace, out)
    print(f"written to {out}")
    return OK


_SUFFIX = {"chrome": "json", "parquet": "parquet"}
