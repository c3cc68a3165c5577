"""``clustersim run``: simulate a job, or a product of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from clustersim.cli.output import BAD_INPUT, FAILED, OK, print_json, progress, written_text
from clustersim.cli.setup import setup_of

if TYPE_CHECKING:
    from clustersim.faults import Fault
    from clustersim.library.job import JobSetup
    from clustersim.trace.result import Result

__all__ = ["run"]

EXAMPLES = """\
What should run? For example:
  clustersim run llama-2-7b-tp8-dp2
  clustersim run llama-3-70b-tp8-pp4 --set nodes=32 --out runs/big
  clustersim run llama-3-70b-tp8-pp4 --vary plan.pp=1,2,4 --vary micro_batch=1,2
  clustersim run --model ./config.json --topology dgx-a100 --set plan.tp=8 \\
      --set global_batch=64 --set seq_len=4096
All jobs, models and topologies: clustersim list. All settings: clustersim show keys."""


def run(
    job: str | None = None,
    /,
    *,
    model: str | None = None,
    topology: str | None = None,
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    vary: tuple[str, ...] = (),
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    definitions: bool = False,
    full: bool = False,
    verbose: Annotated[bool, Parameter(name=("--verbose", "-v"))] = False,
) -> int:
    """Simulate a training job.

    Parameters
    ----------
    job
        a job card, a .toml file, or the folder of an earlier run
    model
        a model card or a Hugging Face config.json
    topology
        a topology card or a .toml file
    settings
        KEY=VALUE, as often as needed, the last of each key counts; all keys: clustersim show keys
    vary
        KEY=A,B,C: every combination with the other --vary
    out
        folder for the trace, a timeline, the summary and what repeats the run
    as_json
        print one JSON object
    definitions
        print what each field means
    full
        simulate every rank, not one of each class of equal ranks
    verbose
        also say how each collective ran (algorithm, protocol, time, and with --json why), what is worth measuring, and
        where each hardware number came from
    """
    if job is None and model is None and topology is None and not settings:
        if definitions:
            print(_definitions(as_json=as_json))
            return OK
        print(EXAMPLES)
        return BAD_INPUT
    setup, faults = setup_of(job, model, topology, settings)
    if vary:
        from clustersim.cli.sweep import run_sweep

        return run_sweep(setup, vary, faults, out=out, as_json=as_json, fold=not full)
    if definitions and not as_json:
        print(_definitions(as_json=False), end="\n\n")
    return _run_one(setup, faults, out=out, as_json=as_json, definitions=definitions, fold=not full, verbose=verbose)


def _run_one(
    setup: JobSetup,
    faults: list[Fault],
    *,
    out: Path | None,
    as_json: bool,
    definitions: bool,
    fold: bool,
    verbose: bool,
) -> int:
    from clustersim.analysis.number_sources import number_sources
    from clustersim.analysis.summary import summary
    from clustersim.engine.deadlock import Deadlock
    from clustersim.study.point import prepare, run_point
    from clustersim.trace.formats.folder import refuse_folder

    point = prepare(setup, [*faults, *(refuse_folder(out) if out else ())])
    try:
        with progress(point.job.name) as at:
            result = run_point(point, fold=fold, progress=None if at is None else lambda ns: at(ns / 1e9))
    except Deadlock as deadlock:
        if deadlock.result is None:
            raise
        result = deadlock.result
    answer = summary(result)
    written = "" if out is None else _write(result, setup, out)  # before a pipe that is read in part can end all
    table = setup.value("kernel_table")
    sources = number_sources(result.topology, result.record.timed, table=None if table is None else Path(table).stem)
    if as_json:
        rows: dict[str, Any] = {}
        if verbose:
            rows = {"collectives": result.collectives.to_dict("records"), "sources": sources}
        print_json(answer | rows | ({"definitions": _meanings()} if definitions else {}))
    else:
        print(answer)
        if verbose:
            from clustersim.cli.collectives_text import collectives_text
            from clustersim.cli.sources_text import coverage_text, sources_text

            print(f"\n{collectives_text(result.collectives)}")
            print(f"\n{coverage_text(answer['coverage'], answer['coverage_missing'])}")
            print(f"\n{sources_text(sources)}")
        if written:
            print(f"\n{written}")
    return OK if answer["status"] == "ok" and written is not None else FAILED


def _write(result: Result, setup: JobSetup, out: Path) -> str | None:
    """Write the run folder; what was written, None where it could not be: the disk may have filled up meanwhile."""
    import sys

    from clustersim.study.run_folder import write_run

    try:
        return written_text(out, write_run(result, setup, out))
    except OSError as error:
        print(f"--out: {str(out)!r} could not be written: {error}", file=sys.stderr)
        return None


def _meanings() -> Mapping[str, Any]:
    from clustersim.analysis.definitions import definitions

    return definitions()


def _definitions(*, as_json: bool) -> str:
    import json
    import textwrap

    meanings = _meanings()
    if as_json:
        return json.dumps(meanings, indent=2)
    lines = []
    for name, meaning in meanings.items():
        lines += [name, *textwrap.wrap(meaning, 76, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)
