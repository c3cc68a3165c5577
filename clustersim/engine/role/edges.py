"""What waits for what in a program that is played several times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.workload.arrays import Arrays

__all__ = ["all_edges", "direct_edges"]


def all_edges(arrays: Arrays, rounds: int) -> NDArray[np.int64]:
    """Edges of a program over its rounds: its own, and to the next round along its streams and by what it carries over.

    Returns
    -------
    NDArray[int64], shape (E, 2)
        (before, after), sorted by ``after``
    """
    n = len(arrays)
    if rounds == 1:
        return arrays.edges.astype(np.int64)
    offsets = (np.arange(rounds, dtype=np.int64) * n)[:, None, None]
    parts = [(arrays.edges[None] + offsets).reshape(-1, 2)]
    if rounds > 1:
        crossing = [arrays.carries.astype(np.int64)] if len(arrays.carries) else []
        for s in range(len(arrays.streams)):
            ops = np.flatnonzero(arrays.stream == s)
            if len(ops):
                crossing.append(np.array([[ops[-1], ops[0]]], dtype=np.int64))
        if crossing:
            joined = np.unique(np.concatenate(crossing), axis=0)
            parts.append((joined[None] + offsets[:-1] + np.array([0, n])).reshape(-1, 2))
    joined = np.concatenate(parts).astype(np.int64)
    keys = np.sort(joined[:, 1] * (n * rounds) + joined[:, 0], kind="stable")
    unique = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    return np.stack([unique % (n * rounds), unique // (n * rounds)], axis=1)


def direct_edges(edges: NDArray[np.int64], stream: NDArray[np.int64]) -> NDArray[np.int64]:
    """Edges without those that a way over one further op and along its stream implies.

    Where c waits for a and for b, and b stands on its stream behind an op that waits for a or for what stands on the
    stream of a behind it, c need not wait for a itself.

    Parameters
    ----------
    edges : NDArray[int64], shape (E, 2)
        (before, after), sorted by ``after``, without cycles
    stream : NDArray[int64], shape (N,)
        of each op; those of one stream stand in the order of their numbers and wait for each other
    """
    num_ops, num_streams = len(stream), int(stream.max(initial=-1)) + 1
    before, after = edges.T
    # by stream, the first op on it that waits for an op, and the last op on it that an op waits for
    next_on = np.full((num_streams, num_ops), num_ops, dtype=np.int64)
    last_on = np.full((num_streams, num_ops), -1, dtype=np.int64)
    next_on[stream[after[::-1]], before[::-1]] = after[::-1]  # where several are assigned, the last one stays
    by_before = np.argsort(before, kind="stable")
    last_on[stream[before[by_before]], after[by_before]] = before[by_before]
    for s in range(num_streams):
        ops = np.flatnonzero(stream == s)[::-1]
        next_on[:, ops] = np.minimum.accumulate(next_on[:, ops], axis=1)
    several = np.flatnonzero(np.bincount(after, minlength=num_ops)[after] > 1)
    implied = np.zeros(len(edges), dtype=bool)
    for following, latest in zip(next_on, last_on, strict=True):
        implied[several] |= following[before[several]] <= latest[after[several]]
    return edges[~implied]
