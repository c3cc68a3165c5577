"""Chrome's trace format in the dialect of PyTorch's profiler (Kineto): for ui.perfetto.dev and for HTA.

One process a rank, one track a stream. An op on the GPU is a ``kernel`` or a ``gpu_memcpy`` with the arguments that
Kineto gives it (``stream``, ``device``, ``correlation``); work of the host or of a drive is a ``cpu_op``. HTA tells
communication by a name that begins with ``nccl`` and copies by ``Memcpy``, so these have such names and carry their own
in ``args.op``. Steps are ``ProfilerStep#k`` annotations on a track of their own. HTA rounds each kernel inwards to
whole microseconds, as it does for real traces; with ``HTA_DISABLE_NS_ROUNDING=1`` its temporal breakdown is ours
exactly.

Sources: the trace event format (Google, "Trace Event Format"), Kineto's traces, HTA 0.5 ``utils.get_kernel_type`` and
``common.trace_file.create_rank_to_trace_dict``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import numpy as np

from clustersim.hardware.gpu import GPU
from clustersim.trace.formats.chrome_events import Edges, events
from clustersim.trace.formats.whole_file import whole_file
from clustersim.trace.steps import step_edges_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["write", "write_folder"]


def write(
    trace: pd.DataFrame, path: str | Path, *, gpu: GPU | None = None, launches: bool = False, flows: bool = False
) -> Path:
    """Write all rows into one file.

    Parameters
    ----------
    trace : DataFrame
        rows of one or more ranks; a run's own trace has one rank of each class
    path : str or Path
        ``trace.json``, or ``trace.json.gz`` to have it compressed
    gpu : GPU, optional
        for ``deviceProperties``
    launches : bool
        also a ``cudaLaunchKernel`` event of no length for each op on the GPU, at the instant at which it became ready:
        HTA finds the iteration of a kernel by it
    flows : bool
        also an arrow from each op's cause to it, where they are on different tracks

    Returns
    -------
    Path
        of the file

    Raises
    ------
    ValueError
        when ops overlap on a stream, or flows are asked for and labels are not unique
    """
    path = Path(path)
    with whole_file(path) as place, _opened(place) as file:
        for piece in _pieces(trace, gpu, launches, flows):
            file.write(piece)
    return path


def write_folder(trace: pd.DataFrame, folder: str | Path, *, gpu: GPU | None = None) -> list[Path]:
    """Write one file a rank, with launches, as HTA's ``TraceAnalysis(trace_dir=folder)`` reads them.

    Returns
    -------
    list[Path]
        ``rank_0.json.gz`` …, by rank

    Raises
    ------
    ValueError
        when the trace has several runs, which would share rank numbers, or when ops overlap on a stream
    """
    runs = trace["run"].astype("category").cat.remove_unused_categories().cat.categories
    if len(runs) > 1:
        raise ValueError(f"trace: has the runs {', '.join(runs)}; one folder takes one of them")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    edges = step_edges_of(trace) if len(trace) else None
    paths = []
    for rank in np.unique(trace["rank"].to_numpy()).tolist():
        path = folder / f"rank_{rank}.json.gz"
        with whole_file(path) as place, _opened(place) as file:
            for piece in _pieces(trace[trace["rank"] == rank], gpu, launches=True, flows=False, edges=edges):
                file.write(piece)
        paths.append(path)
    return paths


def _opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return cast("TextIO", gzip.open(path, "wt", encoding="utf-8"))
    return path.open("w", encoding="utf-8")


def _pieces(
    trace: pd.DataFrame, gpu: GPU | None, launches: bool, flows: bool, edges: Edges | None = None
) -> Iterator[str]:
    """The file, piece by piece: never as a whole in memory."""
    yield "{\n"
    for key, value in _header(trace, gpu).items():
        yield f"{json.dumps(key)}: {json.dumps(value)},\n"
    yield '"traceEvents": ['
    separator = "\n"
    for event in events(trace, launches, flows, edges):
        yield separator
        yield event
        separator = ",\n"
    yield "\n]}\n"


def _header(trace: pd.DataFrame, gpu: GPU | None) -> dict[str, object]:
    device: dict[str, object] = {"id": 0, "name": gpu.name if gpu else "simulated GPU"}
    if gpu:
        device |= {"totalGlobalMem": gpu.memory_bytes, "numSms": gpu.num_sms}
    header: dict[str, object] = {"schemaVersion": 1, "deviceProperties": [device]}
    ranks = trace[["rank", "multiplicity"]].drop_duplicates()
    if len(ranks) == 1:
        rank = int(ranks["rank"].iloc[0])
        world = max(rank + 1, int(ranks["multiplicity"].sum()))
        header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
    return header | {"displayTimeUnit": "ms"}
