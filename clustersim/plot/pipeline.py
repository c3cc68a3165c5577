"""What the stages of a pipeline did: a row a stage, a box a micro-batch's way through a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from clustersim.plot.canvas import time_unit
from clustersim.plot.stage_rows import Box, Lane, draw_rows, rows_or_new

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["pipeline"]

_KINDS = {"forward": "F", "backward": "B", "backward input": "I", "backward weight": "W", "optimizer": "O"}
_Unit = tuple[str, int, int]  # kind, micro-batch, virtual stage


def pipeline(
    trace: pd.DataFrame, ranks: Sequence[int] | None = None, ax: Axes | None = None, step: int | None = None
) -> Axes:
    """Draw a step as papers on pipeline parallelism do: blank is where no kernel of the stage runs.

    A box reaches from the first kernel of a unit to its last, communication between them included; it is split where
    another unit stands between. Two units whose kernels alternate share the height of the row, the forward above. With
    several chunks a stage, later ones are darker; of two directions the second is.

    Parameters
    ----------
    trace : DataFrame
        of one run, with the columns of :data:`clustersim.trace.schema.COLUMNS`
    ranks : Sequence[int], optional
        which ranks, from top to bottom; when None the lowest rank of each stage
    ax : Axes, optional
        where to draw; a new figure when None
    step : int, optional
        which step; the last of the trace when None

    Returns
    -------
    Axes
        one PolyCollection for each kind of unit and chunk

    Raises
    ------
    ValueError
        when the step has no forward kernel, or a rank no kernel
    """
    rows = trace[trace["step"] == (trace["step"].max() if step is None else step)]
    rows = rows[rows["phase"].isin(_KINDS) & rows["category"].isin(("compute", "optimizer"))]
    rows = rows[(rows["micro_batch"] >= 0) | (rows["phase"] == "optimizer")]
    forward = rows[rows["phase"] == "forward"]
    if forward.empty:
        raise ValueError("trace: no forward kernel" + ("" if step is None else f" in step {step}"))
    stages = _one_a_stage(forward)
    shown = stages if ranks is None else [int(rank) for rank in ranks]
    missing = sorted(set(shown) - set(rows["rank"]))
    if missing:
        raise ValueError(f"ranks: {missing} have no kernel in the trace")
    rows = rows[rows["rank"].isin(shown)]
    origin = int(rows["start_ns"].min())
    unit_ns, unit = time_unit(int(rows["end_ns"].max()) - origin)
    boxes = [
        Box(
            row=row,
            start=(start - origin) / unit_ns,
            end=(end - origin) / unit_ns,
            kind=kind,
            micro_batch=micro_batch,
            shade=max(stage, 0) // len(stages),
            lane=lane,
        )
        for row, rank in enumerate(shown)
        for (kind, micro_batch, stage), start, end, lane in _spans(rows[rows["rank"] == rank])
    ]
    names = [f"stage {stages.index(rank)} (rank {rank})" if rank in stages else f"rank {rank}" for rank in shown]
    ax = rows_or_new(ax, names)
    draw_rows(ax, boxes, names, 1 + max(int(forward["stage"].max()), 0) // len(stages))
    ax.set_xlabel(f"time since the first kernel of step {int(rows['step'].iloc[0])} [{unit}]")
    return ax


def _one_a_stage(forward: pd.DataFrame) -> list[int]:
    """The lowest of the ranks that do the same micro-batches of the same chunks, in the order of the first chunk."""
    units = forward[["rank", "stage", "micro_batch"]].drop_duplicates().sort_values(["rank", "stage", "micro_batch"])
    rank = units["rank"].to_numpy()
    content = units[["stage", "micro_batch"]].to_numpy(np.int64)
    starts = np.flatnonzero(np.diff(rank, prepend=rank[0] - 1))
    first: dict[bytes, tuple[int, int]] = {}
    for at, part in zip(starts, np.split(content, starts[1:]), strict=True):
        first.setdefault(part.tobytes(), (int(part[0, 0]), int(rank[at])))
    return [rank for _, rank in sorted(first.values())]


def _spans(rows: pd.DataFrame) -> list[tuple[_Unit, int, int, Lane]]:
    """The boxes of one rank: units that nothing cuts, pieces of those that something does, alternating pairs."""
    rows = rows.sort_values(["start_ns", "end_ns"], kind="stable")
    units = zip(
        (_KINDS[phase] for phase in rows["phase"]), rows["micro_batch"].tolist(), rows["stage"].tolist(), strict=True
    )
    # an optimizer step is one box, whatever chunks it is for
    keys: list[_Unit] = [unit if unit[0] != "O" else ("O", -1, -1) for unit in units]
    ops = list(zip(keys, rows["start_ns"].tolist(), rows["end_ns"].tolist(), strict=True))
    runs: list[tuple[_Unit, int, int]] = []
    for key, group in groupby(ops, key=lambda op: op[0]):
        members = list(group)
        runs.append((key, members[0][1], max(end for _, _, end in members)))
    found: list[tuple[_Unit, int, int, Lane]] = []
    for cluster in _clusters(runs):
        pieces: dict[_Unit, list[tuple[_Unit, int, int]]] = {}
        for run in cluster:
            pieces.setdefault(run[0], []).append(run)
        alternate = sorted(key[0] for key in pieces) in (["B", "F"], ["F", "I"])
        if alternate and all(len(parts) > 1 for parts in pieces.values()):
            for key, parts in pieces.items():
                found.append((key, parts[0][1], max(end for _, _, end in parts), "upper" if key[0] == "F" else "lower"))
        else:
            found += [(*run, "whole") for run in cluster]
    return found


def _clusters(runs: list[tuple[_Unit, int, int]]) -> list[list[tuple[_Unit, int, int]]]:
    """Runs of units in order, cut where no unit is still to go on."""
    last = {key: k for k, (key, _, _) in enumerate(runs)}
    clusters: list[list[tuple[_Unit, int, int]]] = []
    open_until = -1
    for k, run in enumerate(runs):
        if k > open_until:
            clusters.append([])
        clusters[-1].append(run)
        open_until = max(open_until, last[run[0]])
    return clusters
