"""Bruck's algorithms, step by step on real blocks."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.collective.bruck import bruck
from clustersim.collective.traffic import GroupShape

BLOCK = 1000


def one_node(n: int) -> GroupShape:
    return GroupShape(node=np.zeros(n, dtype=np.int64))


def flows(kind: str, n: int) -> list[dict[tuple[int, int], int]]:
    return [
        dict(zip(zip(p.source.tolist(), p.destination.tolist(), strict=True), p.nbytes.tolist(), strict=True))
        for p in bruck(kind, n * BLOCK, one_node(n)).phases
    ]


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13, 16])
def test_all_to_all_brings_every_block_where_it_belongs(n: int) -> None:
    at = {(i, j): i for i in range(n) for j in range(n)}  # block from i for j
    steps = []
    for k in range((n - 1).bit_length()):
        moved: dict[tuple[int, int], int] = {}
        for (i, j), where in list(at.items()):
            if (j - i) % n >> k & 1:
                at[i, j] = (where + (1 << k)) % n
                moved[where, at[i, j]] = moved.get((where, at[i, j]), 0) + BLOCK
        steps.append(moved)
    assert all(where == j for (_, j), where in at.items())
    assert flows("all_to_all", n) == steps


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13, 16])
def test_all_gather_brings_every_block_everywhere(n: int) -> None:
    has = [[i] for i in range(n)]
    steps = []
    for k in range((n - 1).bit_length()):
        count = min(1 << k, n - (1 << k))
        sent = [blocks[:count] for blocks in has]
        for i, blocks in enumerate(sent):
            has[(i - (1 << k)) % n].extend(blocks)
        steps.append({(i, (i - (1 << k)) % n): count * BLOCK for i in range(n)})
    assert all(sorted(blocks) == list(range(n)) for blocks in has)
    assert flows("all_gather", n) == steps


def test_a_power_of_two_sends_half_its_payload_a_step() -> None:
    phases = bruck("all_to_all", 16_000, one_node(16)).phases
    assert [set(p.nbytes.tolist()) for p in phases] == [{8000}] * 4


def test_memory_is_turned_before_and_after() -> None:
    """2 members, 2000 B: in and out 4000, staging 2 · 1000, turned twice at 4000; a gather 3000 and turned once."""
    assert bruck("all_to_all", 2000, one_node(2)).memory_nbytes.tolist() == [4000 + 2000 + 8000] * 2
    assert bruck("all_gather", 2000, one_node(2)).memory_nbytes.tolist() == [3000 + 2000 + 4000] * 2
