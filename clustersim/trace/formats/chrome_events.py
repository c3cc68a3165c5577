"""Rows of a trace as events of Chrome's format, in the dialect of PyTorch's profiler."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from clustersim.trace.steps import step_edges_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Edges", "events"]

_MEMCPY = {
    "h2d": "Memcpy HtoD (Pinned -> Device)",
    "d2h": "Memcpy DtoH (Device -> Pinned)",
    "d2d": "Memcpy DtoD (Device -> Device)",
}
_POINT_TO_POINT = ("send", "recv", "send_recv", "all_to_all")  # NCCL runs all of them in its SendRecv kernel
_STEPS = 0  # number of the track with the steps; streams count from 1, as HTA takes 0 for none

Edges = tuple[NDArray[np.int64], NDArray[np.int64]]


def events(trace: pd.DataFrame, launches: bool, flows: bool, edges: Edges | None) -> Iterator[str]:
    """Events as JSON, process by process, track by track, in order of time.

    Parameters
    ----------
    trace : DataFrame
        rows of one or more ranks
    launches, flows : bool
        see :func:`clustersim.trace.formats.chrome.write`
    edges : tuple, optional
        steps, shape (n,), and the instants between them [ns], shape (n + 1,); found in the rows of each run when None

    Raises
    ------
    ValueError
        when two rows overlap on a track, or for ``flows`` when labels of rows are there twice
    """
    num_processes = 0
    runs = list(dict.fromkeys(trace["run"]))
    place = np.zeros((2, len(trace)), np.int64)
    correlation = 1
    run, rank = trace["run"].to_numpy(), trace["rank"].to_numpy()
    for name in runs:
        of_run = np.flatnonzero(run == name)
        steps, instants = edges or step_edges_of(trace.iloc[of_run])
        for number in np.unique(rank[of_run]).tolist():
            process = number if len(runs) == 1 else num_processes
            num_processes += 1
            rows = of_run[rank[of_run] == number]
            mine = trace.iloc[rows]
            tracks = {stream: k + 1 for k, stream in enumerate(dict.fromkeys(mine["stream"]))}
            multiplicity = int(mine["multiplicity"].iloc[0])
            title = f"rank {number}" + (f" (and {multiplicity - 1} like it)" if multiplicity > 1 else "")
            yield _meta("process_name", process, 0, {"name": title if len(runs) == 1 else f"{name} {title}"})
            yield _meta("process_sort_index", process, 0, {"sort_index": process})
            queues = {_STEPS: "steps"} | {track: str(stream) for stream, track in tracks.items()}
            for track, queue in (queues | ({len(queues): "launches"} if launches else {})).items():
                yield _meta("thread_name", process, track, {"name": queue})
                yield _meta("thread_sort_index", process, track, {"sort_index": track})
            for step, begin, end in zip(steps.tolist(), instants[:-1].tolist(), instants[1:].tolist(), strict=True):
                yield (
                    f'{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": {process}, '
                    f'"tid": {_STEPS}, "ts": {begin / 1000:.3f}, "dur": {(end - begin) / 1000:.3f}}}'
                )
            track_of = mine["stream"].map(tracks).to_numpy().astype(np.int64)
            place[0, rows], place[1, rows] = process, track_of
            _refuse_overlap(mine, track_of)
            yield from _slices(mine, process, track_of, correlation)
            if launches:
                yield from _launches(mine, process, len(queues), correlation)
            correlation += len(mine)
    if flows:
        yield from _flows(trace, place)


def _meta(name: str, pid: int, tid: int, args: dict[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": args})


def _slices(rows: pd.DataFrame, pid: int, track: NDArray[np.int64], correlation: int) -> Iterator[str]:
    alike = ["name", "category", "kind", "group", "phase", "bound", "pool"]
    number = rows.groupby(alike, observed=True, sort=False, dropna=False).ngroup().to_numpy()
    _, first = np.unique(number, return_index=True)
    fixed = [_fixed(*row) for row in rows.iloc[first][alike].itertuples(index=False, name=None)]
    duration = (rows["end_ns"] - rows["start_ns"]).to_numpy()
    nbytes = rows["nbytes"].to_numpy()
    columns: list[Iterable[int]] = [number.tolist(), track.tolist(), duration.tolist(), nbytes.tolist()]
    columns += [rows[name].tolist() for name in ("start_ns", "wait_ns", "step", "micro_batch", "layer", "stage")]
    for k, (of, tid, dur, size, start, wait, step, micro_batch, layer, stage) in enumerate(zip(*columns, strict=True)):
        is_on_gpu, is_copy, head = fixed[of]
        gpu = f', "device": 0, "stream": {tid}, "correlation": {correlation + k}' if is_on_gpu else ""
        if is_copy:
            gpu += f', "bytes": {size}, "memory bandwidth (GB/s)": {size / dur if dur else 0.0:.6g}'
        yield (
            f'{{"ph": "X", "pid": {pid}, "tid": {tid}, "ts": {start / 1000:.3f}, "dur": {dur / 1000:.3f}, {head}, '
            f'"nbytes": {size}, "wait_us": {wait / 1000:.3f}, "step": {step}, "micro_batch": {micro_batch}, '
            f'"layer": {layer}, "stage": {stage}{gpu}}}}}'
        )


def _fixed(
    name: str, category: str, kind: str, group: str, phase: str, bound: str, pool: str
) -> tuple[bool, bool, str]:
    """Whether an op runs on the GPU, whether it is a copy, and what all its slices have in common."""
    args = {"op": name, "kind": kind, "phase": phase, "bound": bound}
    if pool:
        args["waited for"] = pool
    shown = name
    if category == "communication":
        camel = "SendRecv" if kind in _POINT_TO_POINT else "".join(word.capitalize() for word in kind.split("_"))
        shown = f"ncclDevKernel_{camel}_{group.split('/')[0]}"
        args |= {"Collective name": kind, "Process Group Name": group}
    elif category == "copy":
        shown = _MEMCPY.get(kind, f"Memcpy {kind}")
    kineto = {"communication": "kernel", "compute": "kernel", "optimizer": "kernel", "copy": "gpu_memcpy"}
    head = f'"name": {json.dumps(shown)}, "cat": "{kineto.get(category, "cpu_op")}", "args": {json.dumps(args)[:-1]}'
    return category in kineto, category == "copy", head


def _launches(rows: pd.DataFrame, pid: int, tid: int, correlation: int) -> Iterator[str]:
    on_gpu = ~rows["category"].isin(["host", "launch", "storage"]).to_numpy()
    at = np.flatnonzero(on_gpu)
    ready = rows["ready_ns"].to_numpy()[at]
    for k in np.argsort(ready, kind="stable").tolist():
        yield (
            f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": {pid}, "tid": {tid}, '
            f'"ts": {ready[k] / 1000:.3f}, "dur": 0.000, "args": {{"correlation": {correlation + int(at[k])}}}}}'
        )


def _flows(trace: pd.DataFrame, place: NDArray[np.int64]) -> Iterator[str]:
    """Arrows from causes; they leave a nanosecond before the end, for an arrow binds to the slice that is open."""
    import pandas as pd

    if not trace.index.is_unique:
        raise ValueError("trace: its labels must be unique for arrows from causes")
    start, end = trace["start_ns"].to_numpy(), trace["end_ns"].to_numpy()
    cause = trace.index.get_indexer(pd.Index(trace["cause"]))
    for k in np.flatnonzero((cause >= 0) & (place != place[:, cause]).any(axis=0)).tolist():
        source = int(cause[k])
        leaves = max(int(start[source]), int(end[source]) - 1)
        common = f'"id": {k}, "name": "cause", "cat": "cause"'
        for ph, at, row in (("s", leaves, source), ("f", int(start[k]), k)):
            bind = ', "bp": "e"' if ph == "f" else ""
            yield (
                f'{{"ph": "{ph}", {common}, "pid": {place[0, row]}, "tid": {place[1, row]}, '
                f'"ts": {at / 1000:.3f}{bind}}}'
            )


def _refuse_overlap(rows: pd.DataFrame, track: NDArray[np.int64]) -> None:
    start, end = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    order = np.lexsort((end, start, track))
    begins_early = (start[order][1:] < end[order][:-1]) & (track[order][1:] == track[order][:-1])
    if begins_early.any():
        at = int(np.argmax(begins_early))
        first, second = (rows.iloc[int(order[at + k])] for k in (0, 1))
        where = f"rank {first['rank']}, stream {first['stream']}, {second['start_ns']} ns"
        raise ValueError(
            f"trace: {where}: {first['name']!r} and {second['name']!r} overlap; a track shows one at a time"
        )
