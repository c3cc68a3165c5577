"""Names of many resources at once."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from clustersim.topology.naming import listing, pattern_of, patterns, span
from clustersim.topology.resources import Block, ResourceTable


@pytest.fixture
def table() -> ResourceTable:
    return ResourceTable(
        [
            Block(kind="nvlink", shape=(16, 8), capacity=1e9, latency=0.0, label="node{}/gpu{}/nvlink.up"),
            Block(kind="spine", shape=(), capacity=5e9, latency=0.0, label="spine"),
            Block(kind="nvlink", shape=(4, 8), capacity=1e9, latency=0.0, label="node{}/gpu{}/nvlink.up", start=16),
            Block(kind="leaf_up", shape=(12,), capacity=2e9, latency=0.0, label="leaf{}/up"),
        ]
    )


def numbers(brace: str) -> list[str]:
    """What one brace stands for."""
    found = []
    for part in brace.strip("{}").split(",") if ",{" in brace or "}," in brace else [brace]:
        first, *more = part.strip("{}").split("..")
        if not more:
            found += first.split(",")
        else:
            found += map(str, range(int(first), int(more[0]) + 1, int(more[1]) if len(more) > 1 else 1))
    return found


def expanded(text: str) -> list[str]:
    """All names of one pattern, as a shell expands it."""
    pieces = re.split(r"(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})", text)
    return ["".join(parts) for parts in product(*(numbers(p) if p.startswith("{") else [p] for p in pieces))]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([3], "3"),
        ([3, 4], "{3..4}"),
        ([0, 4, 8, 12], "{0..12..4}"),
        ([0, 3], "{0,3}"),
        ([0, 1, 2, 7], "{{0..2},7}"),
        ([0, 2, 5, 9, 14], None),
    ],
)
def test_numbers(given: list[int], text: str | None) -> None:
    assert span(given) == text


def test_a_whole_block_and_one_that_starts_late(table: ResourceTable) -> None:
    assert [pattern_of(block)[0] for block in table.blocks] == [
        "node{0..15}/gpu{0..7}/nvlink.up",
        "spine",
        "node{16..19}/gpu{0..7}/nvlink.up",
        "leaf{0..11}/up",
    ]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["leaf3/up"], "leaf3/up"),
        (["spine", "leaf0/up", "leaf1/up"], "spine, leaf{0..1}/up"),
        ([f"node{n}/gpu{g}/nvlink.up" for n in (0, 4, 8) for g in (1, 5)], "node{0..8..4}/gpu{1,5}/nvlink.up"),
        (["node0/gpu0/nvlink.up", "node1/gpu1/nvlink.up"], "node0/gpu0/nvlink.up, node1/gpu1/nvlink.up"),
        ([f"node{n}/gpu{n % 8}/nvlink.up" for n in range(9)], "node0/gpu0/nvlink.up and 8 more"),
    ],
)
def test_some(table: ResourceTable, names: list[str], text: str) -> None:
    assert patterns(table, np.array([table.find(name) for name in names])) == text


def test_directions_are_one_pattern() -> None:
    both = [
        Block(kind="nvlink", shape=(2, 8), capacity=1e9, latency=0.0, label=f"node{{}}/gpu{{}}/nvlink.{way}")
        for way in ("up", "down")
    ]
    assert patterns(ResourceTable(both), np.arange(32)) == "node{0..1}/gpu{0..7}/nvlink.{up,down}"
    (one,) = listing(ResourceTable(both))
    assert (one.names, one.count, one.num_names) == ("node{0..1}/gpu{0..7}/nvlink.{up,down}", 32, 32)


def test_a_listing_has_every_resource_once_and_says_which_names_are_none() -> None:
    blocks = [
        Block(kind="nvlink", shape=(2,), capacity=1e9, latency=0.0, label=f"node{{}}/gpu{a}/nvlink.gpu{b}")
        for a in range(4)
        for b in range(4)
        if a != b
    ]
    fast = Block(kind="nvlink", shape=(2,), capacity=2e9, latency=0.0, label="node{}/gpu4/nvlink.gpu0", num_links=2)
    first, second = listing(ResourceTable([*blocks, fast]))
    assert (first.names, first.count, first.num_names) == ("node{0..1}/gpu{0..3}/nvlink.gpu{0..3}", 24, 32)
    assert (second.names, second.count, second.num_links) == ("node{0..1}/gpu4/nvlink.gpu0", 2, 2)


def test_what_is_written_expands_to_what_was_meant(table: ResourceTable) -> None:
    draw = np.random.default_rng(0)
    spelled_out = 0
    for _ in range(300):
        nodes, gpus = draw.choice(20, draw.integers(1, 20), False), draw.choice(8, draw.integers(1, 8), False)
        names = {f"node{n}/gpu{g}/nvlink.up" for n in nodes for g in gpus}
        text = patterns(table, np.array([table.find(name) for name in names]))
        more = re.search(r" and ([\d,]+) more$", text)
        listed = [name for part in text.removesuffix(more[0] if more else "").split(", ") for name in expanded(part)]
        assert len(listed) == len(set(listed))
        assert set(listed) <= names
        assert len(listed) + (int(more[1].replace(",", "")) if more else 0) == len(names)
        spelled_out += not more
    assert spelled_out > 30
