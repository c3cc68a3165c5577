"""Runs on disk: a folder that can be repeated, and whatever a name stands for opened as a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clustersim.analysis.summary import summary
from clustersim.library.card import KINDS, Card
from clustersim.library.job import JobSetup, load_job
from clustersim.library.keys import KEYS
from clustersim.study.point import run_point
from clustersim.study.provenance import cards_of
from clustersim.trace.formats import folder as run_folder
from clustersim.trace.formats.folder import RunFolder, is_run_folder
from clustersim.trace.result import Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LiveRun", "open_run", "write_run"]

_DEFAULTS = ("micro_batch", "dtype", "steps", "seed")
"""Settings that a folder's job states even when they were left to their default: the default may change."""


@dataclass(frozen=True)
class LiveRun:
    """A run in memory, with what a :class:`~clustersim.trace.formats.folder.RunFolder` offers."""

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
        "trace.json": lambda path: _chrome(result, path),
        "timeline.png": lambda path: _timeline(result, path),
    }
    run_folder.write(result, folder, extras)
    return sorted(path.name + "/" * path.is_dir() for path in folder.iterdir())


def _copy_cards(cards: Iterable[Card], root: Path) -> None:
    for card in cards:
        path = root / KINDS[card.kind] / card.path.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(card.path.read_bytes())


def _chrome(result: Result, path: Path) -> None:
    from clustersim.trace.formats import chrome

    chrome.write(result.trace, path, gpu=result.topology.gpus[0])


def _timeline(result: Result, path: Path) -> None:
    from clustersim.plot import timeline
    from clustersim.study.figure import save

    trace = result.trace
    save(timeline(trace, step=int(trace["step"].max()) if len(trace) else None), path)


def _job_card(setup: JobSetup, result: Result) -> str:
    """The job as TOML: what was given, and what was derived in its place."""
    plan = result.record.jobs[0].plan
    values = {key: setup.value(key) for key in KEYS if key in setup.values or key in _DEFAULTS}
    values |= {key: plan[key.removeprefix("plan.")] for key in KEYS if key.startswith("plan.") and _states(key, setup)}
    values["nodes"] = result.topology.num_nodes
    for key, kind in (("model", "model"), ("topology", "topology")):
        path = next(card.path for card in cards_of(setup) if card.kind == kind)
        values[key] = f"cards/{KINDS[kind]}/{path.name}"
    sources = {
        key: text for key, text in setup.sources.items() if any(k == key or k.startswith(f"{key}.") for k in values)
    }
    lines = [f"name = {_toml(setup.name or result.record.jobs[0].name)}"]
    lines += [f"description = {_toml(setup.description)}"] if setup.description else []
    lines += ["", *(f"{_key(key)} = {_toml(value)}" for key, value in values.items())]
    lines += ["", "[sources]", *(f"{_key(key)} = {_toml(text)}" for key, text in sources.items())] if sources else []
    return "\n".join(lines) + "\n"


def _states(key: str, setup: JobSetup) -> bool:
    """Whether a setting of the plan is stated: not one whose default is a rule that says nothing of this run."""
    return key in setup.values or KEYS[key].default is not None or key in ("plan.dp", "plan.schedule")


def _key(key: str) -> str:
    return json.dumps(key) if "." in key else key


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
