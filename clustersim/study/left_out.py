"""Errors of measured collectives under numbers that were calibrated on all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from clustersim.study.calibration import Calibration, calibrate, errors
from clustersim.study.measured import Measured
from clustersim.study.starts import network_start, node_start

__all__ = ["COLUMNS", "left_out_errors"]

COLUMNS = ("group", "source")
"""What can be left out: one sweep at a time, or all that one source published."""


def left_out_errors(
    rows: Sequence[Measured],
    column: str = "group",
    *,
    progress: Callable[[float], None] | None = None,
) -> NDArray[np.float64]:
    """Errors of each group's rows under numbers calibrated without it.

    Every calibration begins where those of the shipped cards began, at cards that none of the rows is in, and like
    theirs is without rows of low confidence; so nothing of the group is in the numbers that it is judged by.

    Parameters
    ----------
    rows : sequence of Measured
    column : {"group", "source"}
    progress : callable, optional
        called with the fraction of the rows that are done

    Returns
    -------
    NDArray[float64], shape (num_rows,)
        predicted over measured time, less 1

    Raises
    ------
    ImportError
        when scipy is not installed
    """
    start = Calibration(
        nodes={row.node: node_start(row.node) for row in rows},
        networks={row.network: network_start(row.network) for row in rows},
    )
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(getattr(row.row, column), []).append(index)
    used = [row for row in rows if row.row.confidence != "low"]
    nodes = calibrate([row for row in used if row.topology.num_nodes == 1], start).nodes
    found = np.empty(len(rows))
    done = 0
    for group, members in groups.items():
        part = [rows[i] for i in members]
        alone = {row.node for row in part if row.topology.num_nodes == 1}
        networks = {row.network for row in part if row.topology.num_nodes > 1}
        rest = [
            row
            for row in used
            if getattr(row.row, column) != group
            and (row.node in alone if row.topology.num_nodes == 1 else row.network in networks)
        ]
        # numbers that the group bears on begin anew; those of other nodes would be found as they are
        anew = Calibration(
            nodes={**nodes, **{name: start.nodes[name] for name in alone}},
            networks=start.networks,
        )
        found[members] = errors(part, calibrate(rest, anew))
        done += len(members)
        if progress is not None:
            progress(done / len(rows))
    return found
