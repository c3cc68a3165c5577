"""What ranks ask of the resources around their devices: edges of the system's graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.engine.cost.local_cost import LocalCost
from clustersim.topology.topology import Topology

__all__ = ["PathEdges", "path_edges"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PathEdges:
    """Edges from the ranks of one program to the resources on one hop of one local path.

    Attributes
    ----------
    program : int
        index into ``System.programs``
    path : str
    label : int
        number of (path, hop)
    ranks, rows : NDArray[int64], shape (n,)
        the edges
    loads : NDArray[int64], shape (num_ops,)
        what each distinct op of the program puts on it
    """

    program: int
    path: str
    label: int
    ranks: NDArray[np.int64]
    rows: NDArray[np.int64]
    loads: NDArray[np.int64]


def path_edges(
    topology: Topology,
    local: Mapping[tuple[int, int], Sequence[LocalCost | None]],
    program_of: NDArray[np.int64],
    kind_of: NDArray[np.int64],
    device: NDArray[np.int64],
) -> list[PathEdges]:
    """The edges of all ranks, program by program and hop by hop."""
    edges = []
    labels: dict[tuple[str, int], int] = {}
    for (p, kind), costs in local.items():
        ranks = np.flatnonzero((program_of == p) & (kind_of == kind))
        for name in sorted({name for cost in costs if cost is not None for name, _ in cost.loads}):
            if name not in topology.local:
                continue  # a GPU without a memory resource simply does not share it
            path = topology.local[name]
            for hop, per_byte in enumerate(path.per_byte):
                rows = path.rows[device[ranks], hop]
                here = rows >= 0
                if here.any():
                    label = labels.setdefault((name, hop), len(labels))
                    loads = _loads(costs, name, float(per_byte))
                    edges.append(
                        PathEdges(program=p, path=name, label=label, ranks=ranks[here], rows=rows[here], loads=loads)
                    )
    return edges


def _loads(costs: Sequence[LocalCost | None], path: str, per_byte: float) -> NDArray[np.int64]:
    """Load of each op on one hop of ``path``, shape (len(costs),): whole bytes, or nanoseconds of a drive or a core."""
    asked = [sum(n for name, n in cost.loads if name == path) if cost is not None else 0 for cost in costs]
    return np.array([math.ceil(n * per_byte) for n in asked], dtype=np.int64)
