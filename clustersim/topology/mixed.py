"""Tables of several kinds of nodes as one table: kinds side by side, each with its own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.topology import LocalPath

__all__ = ["common_paths", "common_tiers", "distinct", "stacked"]

Card = TypeVar("Card")


def stacked(tables: Sequence[NDArray[np.int64]], num_rows: Sequence[int]) -> NDArray[np.int64]:
    """Tables between the GPUs of one node, shape (m, m, hops) each, as one between the GPUs of all kinds.

    Rows of a kind are counted on from those of the kinds before it, of which there are ``num_rows`` each; -1 where two
    GPUs are not of one kind.
    """
    size, width = sum(len(table) for table in tables), max(table.shape[2] for table in tables)
    joined = np.full((size, size, width), -1, dtype=np.int64)
    start = row = 0
    for table, count in zip(tables, num_rows, strict=True):
        inside = slice(start, start + len(table))
        joined[inside, inside, : table.shape[2]] = _counted_on(table, row)
        start, row = start + len(table), row + count
    return joined


def distinct(cards: Sequence[tuple[tuple[Card, ...], NDArray[np.int64]]]) -> tuple[tuple[Card, ...], NDArray[np.int64]]:
    """The different cards of all kinds, and the card of each GPU of all kinds."""
    found: list[Card] = []
    index = []
    for of_kind, of_gpu in cards:
        found += [card for card in of_kind if card not in found]
        index.append(np.array([found.index(card) for card in of_kind], dtype=np.int64)[of_gpu])
    return tuple(found), np.concatenate(index)


def common_paths(
    kinds: Sequence[Mapping[str, LocalPath]], num_rows: Sequence[int]
) -> tuple[dict[str, LocalPath], tuple[str, ...]]:
    """The paths that all kinds of nodes have, by the GPUs of all kinds, and what was left out or evened.

    Hops on which kinds ask different demands per byte stand in columns of their own.
    """
    notes, lacking = [], []
    paths = {}
    first_row = np.cumsum([0, *num_rows])
    for name in dict.fromkeys(name for kind in kinds for name in kind):
        having = [kind[name] for kind in kinds if name in kind]
        if len(having) < len(kinds):
            lacking.append(name)
            continue
        slowest = {
            "latency": max(path.latency for path in having),
            "per_file": max(path.per_file for path in having),
            "bandwidth": min(path.bandwidth for path in having),
        }
        for (key, value), unit in zip(slowest.items(), ("s", "s", "B/s"), strict=True):
            if any(getattr(path, key) != value for path in having):
                notes.append(f"{name}: the {key} of the slowest kind of node, {value:g} {unit}, stands for all")
        longest = max((path.per_byte for path in having), key=len)
        alike = all(np.array_equal(path.per_byte, longest[: len(path.per_byte)]) for path in having)
        per_byte = longest if alike else np.concatenate([path.per_byte for path in having])
        rows = np.full((sum(len(path.rows) for path in having), len(per_byte)), -1, dtype=np.int64)
        start = column = 0
        for path, row in zip(having, first_row, strict=False):
            size, width = path.rows.shape
            rows[start : start + size, column : column + width] = _counted_on(path.rows, int(row))
            start += size
            column += 0 if alike else width
        paths[name] = LocalPath(rows=rows, per_byte=per_byte, **slowest)
    if lacking:
        notes.append(f"{', '.join(lacking)}: left out, since not every kind of node has them")
    return paths, tuple(notes)


def common_tiers(kinds: Sequence[Mapping[str, int]]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Capacity of the tiers that all kinds of nodes have, that of the smallest, and what was evened."""
    tiers = {name: min(kind[name] for kind in kinds) for name in kinds[0] if all(name in kind for kind in kinds)}
    notes = [
        f"{name}: the capacity of the smallest kind of node, {least:,} bytes, stands for all"
        for name, least in tiers.items()
        if any(kind[name] != least for kind in kinds)
    ]
    return tiers, tuple(notes)


def _counted_on(rows: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    return np.where(rows >= 0, rows + first, -1)
