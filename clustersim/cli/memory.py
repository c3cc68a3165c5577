"""``clustersim memory``: what a job holds on its GPUs."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from clustersim.cli.output import FAILED, OK, print_json, progress
from clustersim.cli.setup import setup_of

__all__ = ["memory"]


def memory(
    job: str | None = None,
    /,
    *,
    model: str | None = None,
    topology: str | None = None,
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    as_json: Annotated[bool, Parameter(name="--json")] = False,
    full: bool = False,
) -> int:
    """Show what each pipeline stage holds at its peak, and find the largest micro-batch that fits.

    Micro-batches that divide global_batch / dp are simulated from the largest down, until one fits.

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
    as_json
        print one JSON object
    full
        simulate every rank, not one of each class of equal ranks
    """
    from clustersim.study.memory_report import memory_report
    from clustersim.study.memory_text import memory_text
    from clustersim.study.point import prepare

    setup, faults = setup_of(job, model, topology, settings)
    point = prepare(setup, faults)
    with progress("micro-batches, %", total=100) as at:
        report = memory_report(point, fold=not full, progress=None if at is None else lambda part: at(100 * part))
    if as_json:
        print_json(report.answer())
    else:
        print(memory_text(report))
    return OK if report.fits else FAILED
