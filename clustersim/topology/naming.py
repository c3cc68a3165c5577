"""Short names for many resources at once: ``node{0..15}/gpu{0..7}/nvlink.up`` for 128 of them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.resources import Block, ResourceTable

__all__ = ["Listed", "listing", "pattern_of", "patterns", "span"]

_MOST_RUNS = 4
"""Runs of numbers that a pattern spells out."""

_MOST_PATTERNS = 4
"""Patterns that are spelled out."""


def patterns(table: ResourceTable, rows: NDArray[np.int64]) -> str:
    """The resources in ``rows``, by name.

    Braces hold numbers as a shell expands them, so that a pattern can be typed: ``{0..7}`` is all from 0 to 7,
    ``{0..60..4}`` every fourth, ``{0,3}`` these two, ``nvlink.{up,down}`` both directions. Where the names have no such
    pattern, or too many, the first is given and how many others there are.

    Parameters
    ----------
    rows : NDArray[int64], shape (n,)
        each once

    Returns
    -------
    str
        patterns, a comma between them
    """
    rows = np.sort(rows)
    found: list[str] = []
    left = 0
    for number, cut in zip(*_by_block(table, rows), strict=True):
        block = table.blocks[number]
        texts = pattern_of(block, rows[cut] - int(table.first[number]))
        if texts and len(found) + len(texts) <= _MOST_PATTERNS:
            found += texts
        elif len(found) < _MOST_PATTERNS:
            found.append(table.name(int(rows[cut][0])))
            left += len(rows[cut]) - 1
        else:
            left += len(rows[cut])
    return ", ".join(_joined(found)) + (f" and {left:,} more" if left else "")


def pattern_of(block: Block, positions: NDArray[np.int64] | None = None) -> list[str]:
    """Patterns of some resources of a block, of all when None; none where there are too many different ones."""
    if not block.shape:
        return [block.label]
    if positions is None:
        starts = block.start, *(0 for _ in block.shape[1:])
        return [_filled(block.label, [span(range(a, a + n)) for a, n in zip(starts, block.shape, strict=True)])]
    index = np.stack(np.unravel_index(positions, block.shape), axis=1)
    index[:, 0] += block.start
    return [_filled(block.label, texts) for texts in _spans(index)]


def span(numbers: Sequence[int] | NDArray[np.int64]) -> str | None:
    """Different numbers in rising order, as they stand in a name; None where they make too many runs."""
    values = np.asarray(numbers, dtype=np.int64)
    if len(values) == 1:
        return str(int(values[0]))
    steps = np.diff(values)
    step = int(steps[0])
    if (steps == step).all() and (step == 1 or len(values) > 2):
        return f"{{{values[0]}..{values[-1]}{f'..{step}' if step > 1 else ''}}}"
    runs = np.split(values, np.flatnonzero(steps > 1) + 1)
    if len(runs) > _MOST_RUNS:
        return None
    return ",".join(str(run[0]) if len(run) == 1 else f"{{{run[0]}..{run[-1]}}}" for run in runs).join("{}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """Equal resources of a topology under one pattern of names.

    Parameters
    ----------
    names : str
        the pattern
    count : int
        resources
    num_names : int
        what the pattern expands to; more than ``count`` where some of these names are none, such as a GPU's link to
        itself
    kind : str
    capacity : float
        of each [B/s], or nanoseconds of service a second for a ``drive``
    latency : float
        [s]
    num_links : int
        parallel links that each stands for
    """

    names: str
    count: int
    num_names: int
    kind: str
    capacity: float
    latency: float
    num_links: int


def listing(table: ResourceTable) -> list[Listed]:
    """All resources of a table in as few patterns as tell them apart, in the table's order."""
    alike: dict[tuple[object, ...], list[Block]] = {}
    for block in table.blocks:
        label = re.sub(r"\d+", "#", block.label)
        alike.setdefault((block.kind, block.capacity, block.latency, block.num_links, block.start, label), []).append(
            block
        )
    merged: dict[tuple[object, ...], list[Listed]] = {}
    for blocks in alike.values():
        one = _listed(blocks)
        head = _head(one.names)
        same = (head, one.kind, one.capacity, one.latency, one.num_links, one.count, one.num_names)
        merged.setdefault(same, []).append(one)
    return [
        replace(
            ones[0],
            names=", ".join(_joined([one.names for one in ones])),
            count=sum(one.count for one in ones),
            num_names=sum(one.num_names for one in ones),
        )
        for ones in merged.values()
    ]


def _listed(blocks: Sequence[Block]) -> Listed:
    """Blocks whose labels differ in their numbers only."""
    first, count = blocks[0], sum(block.count for block in blocks)
    numbers = np.array([[int(n) for n in re.findall(r"\d+", block.label)] for block in blocks]).reshape(len(blocks), -1)
    columns = [np.unique(column) for column in numbers.T]
    ranges = [column if span(column) else np.arange(column[0], column[-1] + 1) for column in columns]
    texts = iter([span(column) for column in ranges])
    label = re.sub(r"\d+", lambda _: next(texts) or "", first.label)
    return Listed(
        names=pattern_of(replace(first, label=label))[0],
        count=count,
        num_names=max(count, first.count * math.prod(map(len, ranges))),
        kind=first.kind,
        capacity=first.capacity,
        latency=first.latency,
        num_links=first.num_links,
    )


def _head(name: str) -> str:
    """A name up to its last part, after a dot or a slash."""
    return name[: max(name.rfind("/"), name.rfind(".")) + 1]


def _joined(names: Sequence[str]) -> list[str]:
    """Names that differ in their last part only as one: ``gpu0/nvlink.{up,down}``."""
    by_head: dict[str, list[str]] = {}
    for name in names:
        head = _head(name)
        by_head.setdefault(head, []).append(name[len(head) :])
    return [
        head + (tails[0] if len(tails) == 1 else f"{{{','.join(tails)}}}")
        if not any("{" in tail for tail in tails) or len(tails) == 1
        else ", ".join(head + tail for tail in tails)
        for head, tails in by_head.items()
    ]


def _by_block(table: ResourceTable, rows: NDArray[np.int64]) -> tuple[list[int], list[slice]]:
    """Numbers of the blocks that sorted rows lie in, and where each one's stand."""
    blocks = np.searchsorted(table.first, rows, side="right") - 1
    numbers, begin = np.unique(blocks, return_index=True)
    ends = [*begin[1:].tolist(), len(rows)]
    return numbers.tolist(), [slice(a, b) for a, b in zip(begin.tolist(), ends, strict=True)]


def _spans(index: NDArray[np.int64]) -> list[list[str]]:
    """Texts by column whose products are just these rows, shape (n, columns); empty where it takes too many."""
    columns = [np.unique(column) for column in index.T]
    if np.prod([len(column) for column in columns]) == len(index):
        texts = [span(column) for column in columns]
        return [[text for text in texts if text is not None]] if None not in texts else []
    rest: dict[bytes, list[int]] = {}  # no single product: rows alike in all but the first column go together
    for first, part in zip(columns[0].tolist(), np.split(index, np.flatnonzero(np.diff(index[:, 0])) + 1), strict=True):
        rest.setdefault(part[:, 1:].tobytes(), []).append(first)
        if len(rest) > _MOST_RUNS:
            return []
    result = []
    for key, firsts in rest.items():
        head, tails = span(firsts), _spans(np.frombuffer(key, dtype=index.dtype).reshape(-1, index.shape[1] - 1))
        if head is None or not tails:
            return []
        result += [[head, *tail] for tail in tails]
    return result


def _filled(label: str, texts: Sequence[str | None]) -> str:
    head, *pieces = label.split("{}")
    return head + "".join(f"{text}{piece}" for text, piece in zip(texts, pieces, strict=True))
