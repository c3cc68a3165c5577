"""Runs on disk: a folder that can be repeated, and whatever a name stands for opened as a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustersim.analysis.summary import summary
from clustersim.library.card import Card, is_file
from clustersim.library.job import JobSetup, load_job
from clustersim.library.keys import KEYS
from clustersim.study.point import run_point
from clustersim.study.provenance import FOLDERS, cards_of
from clustersim.trace.formats import folder as run_folder
from clustersim.trace.formats.folder import RunFolder, is_run_folder
from clustersim.trace.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["LiveRun", "open_run", "write_run"]

_STATED = ("nodes", "micro_batch", "dtype", "steps", "seed")
"""Settings that a folder's job states even when they were left open: a default may change."""


@dataclass(frozen=True)
class LiveRun:
    """A run in memory, with what a :class:`~clustersim.trace.formats.folder.RunFolder` offers.

    Parameters
    ----------
    result : Result
    """

    result: Result

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The fields of ``run --json``."""
        return summary(self.result)

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What the run was made from."""
        return self.result.inputs

    @property
    def trace(self) -> pd.DataFrame:
        """One row an op of each class."""
        return self.result.trace

    @property
    def collectives(self) -> pd.DataFrame:
        """How each kind of collective ran and why."""
        return self.result.collectives


def open_run(name_or_path: str | Path) -> RunFolder | LiveRun:
    """A run by name: read from its folder, or simulated from its job.

    Raises
    ------
    BadInput
        when it is neither, or has faults
    Deadlock
        when the job ends in one
    """
    path = Path(name_or_path)
    return RunFolder(path) if is_run_folder(path) else LiveRun(run_point(load_job(name_or_path)))


def write_run(result: Result, setup: JobSetup, folder: Path) -> list[str]:
    """Write a run folder with the job that repeats it, the cards behind it, a timeline and a trace for Perfetto.

    Parameters
    ----------
    result : Result
        of :func:`clustersim.study.point.run_point`
    setup : JobSetup
        what it was made from
    folder : Path
        as in :func:`clustersim.trace.formats.folder.write`

    Returns
    -------
    list[str]
        names of what stands in it

    Raises
    ------
    BadInput
        when the folder is somebody else's, or cannot be made
    """
    extras: dict[str, Callable[[Path], object]] = {
        "job.toml": lambda path: path.write_text(_job_card(setup, result)),
        "cards": lambda path: _copy_cards(cards_of(setup), path),
        "trace.json": lambda path: _chrome(result, shown, path),
    }
    shown = _for_perfetto(result)
    if len(result.trace):  # a run that was stopped may have nothing to draw
        extras["timeline.png"] = lambda path: _timeline(result, path)
    run_folder.write(result, folder, extras)
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())
    if len(shown) == len(result.trace):
        return names
    told = f"trace.json ({shown['rank'].nunique():,} of {result.trace['rank'].nunique():,} ranks)"
    return [told if name == "trace.json" else name for name in names]


def _copy_cards(cards: Iterable[Card], root: Path) -> None:
    for card in cards:
        path = root / FOLDERS[card.kind] / card.path.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(card.path.read_bytes())


_MOST_OPS_FOR_PERFETTO = 1_000_000
"""More make a file of hundreds of megabytes that the viewer does not open; ``clustersim export`` writes all."""


def _for_perfetto(result: Result) -> pd.DataFrame:
    """Rows of as many ranks as the viewer can take, of all when they are few enough; at least one rank."""
    trace = result.trace
    if len(trace) <= _MOST_OPS_FOR_PERFETTO:
        return trace
    ops = trace["rank"].value_counts().sort_index()
    fits = max(1, int((ops.cumsum() <= _MOST_OPS_FOR_PERFETTO).sum()))
    return trace[trace["rank"].isin(ops.index[:fits])]


def _chrome(result: Result, trace: pd.DataFrame, path: Path) -> None:
    from clustersim.trace.formats import chrome

    chrome.write(trace, path, gpu=result.topology.gpus[0])


def _timeline(result: Result, path: Path) -> None:
    from clustersim.study.figure import save

    save(lambda: _draw(result), path)


_OPS_TO_TELL_APART, _OPS_SHOWN_CLOSE = 400, 24


def _draw(result: Result) -> Axes:
    """The last step, one rank of each class; where its ops are too many to tell apart, its end besides."""
    from matplotlib.figure import Figure

    from clustersim.plot.timeline import first_work_ns, timeline

    trace = result.trace
    step = int(trace["step"].max())
    rows = trace[trace["step"] == step]
    begin, end = first_work_ns(rows), int(rows["end_ns"].max())
    last = int(rows["rank"].to_numpy()[rows["end_ns"].to_numpy().argmax()])
    own = rows[(rows["rank"] == last) & rows["category"].isin(["compute", "optimizer"])]
    if len(own) > _OPS_TO_TELL_APART:
        whole, close = Figure(figsize=(16, 9), layout="constrained").subplots(2, 1, height_ratios=(3, 2))
        ax = timeline(trace, ax=whole, step=step)
        window = (int(own["start_ns"].nlargest(_OPS_SHOWN_CLOSE).min()) - begin) / 1e9, (end - begin) / 1e9
        timeline(trace, ranks=[last], ax=close, step=step, window=window)
        close.set_title(f"the end of the step on rank {last}", loc="left")
    else:
        ax = timeline(trace, step=step)
    num_classes = len(result.record.lanes)
    classes = "one rank for all" if num_classes == 1 else f"one rank of each of {num_classes} classes"
    shown = classes if result.fold == "exact" else "every rank"
    ax.set_title(f"{result.record.jobs[0].name} on {result.topology.name}: {shown}", loc="left")
    return ax


def _job_card(setup: JobSetup, result: Result) -> str:
    """The job as TOML: what was given, and what was derived in its place."""
    resolved = result.inputs["settings"]
    wanted = {key for key in KEYS if key in setup.values or key in _STATED or key.startswith(("plan.", "graph."))}
    values = {key: value for key, value in resolved.items() if key in wanted}
    if "plan.bucket_bytes" not in setup.values:  # a rule of its own, and no setting where nothing is reduced
        values.pop("plan.bucket_bytes", None)
    for card in reversed(cards_of(setup)):  # the first topology is the run's; others are those of a mix
        if card.kind in ("model", "graph", "topology", "profile"):
            values[card.kind] = f"cards/{FOLDERS[card.kind]}/{card.path.name}"
    for card in cards_of(setup):  # parts that settings name by their files
        for key in values.keys() & setup.values.keys():
            named = str(setup.values[key])
            if (is_file(named) or card.kind == "table") and Path(named).expanduser().absolute() == card.path.absolute():
                values[key] = f"cards/{FOLDERS[card.kind]}/{card.path.name}"
    plan = {key.removeprefix("plan."): values.pop(key) for key in list(values) if key.startswith("plan.")}
    given = [*values, *(f"plan.{key}" for key in plan)]
    sources = {
        key: text for key, text in setup.sources.items() if any(k == key or k.startswith(f"{key}.") for k in given)
    }
    about = {"name": setup.name or result.record.jobs[0].name} | (
        {"description": setup.description} if setup.description else {}
    )
    return (
        "\n".join(
            [*_table(about), "", *_table(values)]
            + (["", "[plan]", *_table(plan)] if plan else [])
            + (["", "[sources]", *_table(sources)] if sources else [])
        )
        + "\n"
    )


def _table(values: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_toml(value)}" for key, value in values.items()]


def _key(key: str) -> str:
    return json.dumps(key) if "." in key else key


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
