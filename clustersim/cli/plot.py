"""``clustersim plot``: a figure of a run, or of a topology."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from clustersim.cli.output import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from clustersim.topology.topology import Topology
    from clustersim.trace.result import Result

__all__ = ["plot"]


def plot(
    run: str,
    name: str | None = None,
    /,
    *,
    kind: Literal["timeline", "pipeline", "breakdown", "memory", "links"] = "timeline",
    settings: Annotated[tuple[str, ...], Parameter(name="--set")] = (),
    out: Path,
) -> int:
    """Draw a run into a file, or a cluster: clustersim plot topology NAME.

    Parameters
    ----------
    run
        a run folder, or a job, which is simulated; or the word topology
    name
        of the topology: a card or a file
    kind
        timeline, pipeline, breakdown, memory or links; the last two are not in a run folder: its job is simulated again
    settings
        KEY=VALUE of a topology, as often as needed: nodes, nics_per_node, fabric.KEY, node.KEY
    out
        FILE.png, .pdf or .svg
    """
    from clustersim.faults import BadInput, Fault
    from clustersim.study.figure import SUFFIXES, save
    from clustersim.trace.formats.whole_file import refuse_file

    faults = []
    if out.suffix not in SUFFIXES:
        rule = f"must end in one of {', '.join(SUFFIXES)}"
        faults.append(Fault(key="--out", value=str(out), rule=rule, nearest=f"{out.with_suffix('.png')}"))
    faults += refuse_file(out, f"{kind}.png")
    if name is not None and run != "topology":
        rule = "must be topology where a second name follows"
        faults.append(Fault(key="plot", value=run, rule=rule, nearest="topology"))
    if name is None and settings:
        rule = "is for plot topology NAME; a job with other settings: clustersim run JOB --set … --out FOLDER"
        faults.append(Fault(key="--set", value=settings[0], rule=rule))
    if faults:
        raise BadInput(faults)
    if name is not None:
        from clustersim.cli.cluster import load_cluster

        cluster = load_cluster(name, settings)
        save(lambda: _of_cluster(cluster), out)
    else:
        save(lambda: (_from_result if kind in ("memory", "links") else _from_trace)(run, kind), out)
    print(f"written to {out}")
    return OK


def _of_cluster(cluster: Topology) -> Axes:
    from clustersim import plot as figures

    return figures.topology(cluster)


def _from_trace(run: str, kind: str) -> Axes:
    from clustersim import analysis
    from clustersim import plot as figures
    from clustersim.faults import BadInput, Fault
    from clustersim.study.run_folder import open_run

    trace = open_run(run).trace
    if kind == "breakdown":
        return figures.breakdown(analysis.breakdown(trace))
    if kind == "timeline":
        return figures.timeline(trace)
    try:
        return figures.pipeline(trace)
    except ValueError as error:  # what has no passes of micro-batches, as a data-flow graph
        rule = f"draws the passes of each stage: {error}"
        raise BadInput([Fault(key="--kind", value=kind, rule=rule, nearest="timeline")]) from None


def _from_result(run: str, kind: str) -> Axes:
    from clustersim import analysis
    from clustersim import plot as figures
    from clustersim.library.job import load_job
    from clustersim.study.point import run_point

    result: Result = run_point(load_job(run))
    if kind == "links":
        return figures.links(analysis.links(result))
    capacity = min(gpu.memory_bytes for gpu in result.topology.gpus)
    return figures.memory(analysis.memory(result), capacity=capacity)
