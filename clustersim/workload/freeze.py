"""From the tables of a program that is built to the arrays that run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from clustersim.workload.arrays import Arrays
from clustersim.workload.program_tables import COLUMNS, ProgramTables

__all__ = ["freeze"]


def freeze(tables: ProgramTables, period: int, resident: Mapping[str, int]) -> Arrays:
    """A program as arrays, with the order of its streams among the edges and a digest of all that is in it.

    Parameters
    ----------
    tables : ProgramTables
    period : int
        optimizer steps that it covers
    resident : Mapping[str, int]
        bytes held from beginning to end, by ``"tier/category"``
    """
    n = len(tables.rows)
    column = dict(zip(COLUMNS, tables.rows.rows().T, strict=True))
    stream = column["stream"].astype(np.int16)
    by_stream = np.argsort(stream, kind="stable")
    same = stream[by_stream[1:]] == stream[by_stream[:-1]]
    before, after = tables.waits.rows().T
    # sorted, not ``np.unique``: its hashing costs several times as much on keys that are nearly in order
    edges = np.sort(np.concatenate([after * n + before, by_stream[1:][same] * n + by_stream[:-1][same]]), kind="stable")
    edges = edges[np.concatenate([[True], edges[1:] != edges[:-1]])] if len(edges) else edges
    columns: dict[str, Any] = {
        "op": column["op"].astype(np.int32),
        "ops": tuple(tables.ops),
        "stream": stream,
        "streams": tuple(tables.streams),
        "phase": column["phase"].astype(np.int16),
        "phases": tuple(tables.phases),
        "micro_batch": column["micro_batch"].astype(np.int32),
        "layer": column["layer"].astype(np.int32),
        "stage": column["stage"].astype(np.int32),
        "step": column["step"].astype(np.int32),
        "period": period,
        "edges": np.stack([edges % max(n, 1), edges // max(n, 1)], axis=1).astype(np.int32),
        "carries": np.unique(tables.carries.rows(), axis=0).astype(np.int32),
        "memory": tables.memory.rows(),
        "memory_keys": tuple(tables.keys),
        "pool_use": tables.pool_use.rows(),
        "pools": tuple(tables.pools),
        "resident": dict(resident),
    }
    digest = hashlib.blake2b(digest_size=16)
    for name, column in columns.items():
        digest.update(name.encode())
        digest.update(column.tobytes() if isinstance(column, np.ndarray) else repr(column).encode())
    return Arrays(**columns, digest=digest.digest())
