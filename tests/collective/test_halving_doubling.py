"""Halving and doubling, step by step on real blocks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from clustersim.collective.halving_doubling import halving_doubling
from clustersim.collective.traffic import GroupShape

BLOCK = 1000


def one_node(n: int) -> GroupShape:
    return GroupShape(node=np.zeros(n, dtype=np.int64))


def step_by_step(kind: str, n: int) -> list[dict[tuple[int, int], int]]:
    """Blocks that each member sends to which in each step; checks that everyone ends with all contributions."""
    p = 1 << (n.bit_length() - 1)
    pairs = n - p
    taking_part = [2 * i + 1 for i in range(pairs)] + list(range(2 * pairs, n))
    num_blocks = p if kind == "all_reduce" else n
    # the blocks whose sums a member that takes part ends with
    mine = [[i] for i in range(p)] if kind == "all_reduce" else [[2 * i, 2 * i + 1] for i in range(pairs)]
    mine += [[b] for b in range(2 * pairs, n)] if kind != "all_reduce" else []
    has = [[Counter({i: 1}) for _ in range(num_blocks)] for i in range(n)]
    if kind == "all_gather":
        has = [[Counter({b: 1}) if b == i else Counter() for b in range(num_blocks)] for i in range(n)]
    steps = []

    def step(moves: list[tuple[int, int, list[int]]], adds: bool) -> None:
        taken = [[has[a][b].copy() for b in blocks] for a, _, blocks in moves]
        for (_, to, blocks), sent in zip(moves, taken, strict=True):
            for b, what in zip(blocks, sent, strict=True):
                assert what, "sends what it does not have"
                has[to][b] = has[to][b] + what if adds else what
        steps.append({(a, to): len(blocks) for a, to, blocks in moves})

    everything = list(range(num_blocks))
    reduces = kind != "all_gather"
    keeps = kind == "reduce_scatter"
    if pairs:
        before = [
            (2 * i, 2 * i + 1, [2 * i] if not reduces else [b for b in everything if not (keeps and b == 2 * i)])
            for i in range(pairs)
        ]
        step(before, adds=reduces)
    reach = 1
    halvings = []
    while reach < p:
        kept = lambda i, r=reach: [b for j in range(p) if j % (2 * r) == i % (2 * r) for b in mine[j]]  # noqa: E731
        halvings.append([(taking_part[i], taking_part[i ^ reach], kept(i ^ reach)) for i in range(p)])
        reach *= 2
    if reduces:
        for moves in halvings:
            step(moves, adds=True)
    if kind != "reduce_scatter":
        for moves in reversed(halvings):
            step([(to, a, blocks) for a, to, blocks in moves], adds=False)
    if pairs and kind == "reduce_scatter":
        step([(2 * i + 1, 2 * i, [2 * i]) for i in range(pairs)], adds=True)
    elif pairs:
        step(
            [
                (2 * i + 1, 2 * i, [b for b in everything if not (kind == "all_gather" and b == 2 * i)])
                for i in range(pairs)
            ],
            adds=False,
        )
    everyone = Counter(range(n))
    for i in range(n):
        if kind == "all_reduce":
            assert all(block == everyone for block in has[i])
        elif kind == "reduce_scatter":
            assert has[i][i] == everyone
        else:
            assert all(has[i][b] == Counter([b]) for b in everything)
    return steps


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 12, 16, 31])
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter"])
def test_flows_are_those_of_the_blocks(kind: str, n: int) -> None:
    num_blocks = 1 << (n.bit_length() - 1) if kind == "all_reduce" else n
    phases = halving_doubling(kind, num_blocks * BLOCK, one_node(n)).phases
    flows = [
        dict(zip(zip(p.source.tolist(), p.destination.tolist(), strict=True), p.nbytes.tolist(), strict=True))
        for p in phases
    ]
    assert flows == [{pair: BLOCK * blocks for pair, blocks in step.items()} for step in step_by_step(kind, n)]


def test_neighbours_exchange_most() -> None:
    phases = halving_doubling("all_reduce", 8000, one_node(8)).phases
    distance = [abs(int(p.source[0] - p.destination[0])) for p in phases]
    assert distance == [1, 2, 4, 4, 2, 1]
    assert [set(p.nbytes.tolist()) for p in phases] == [{4000}, {2000}, {1000}, {1000}, {2000}, {4000}]
    assert [p.num_steps for p in phases] == [1] * 6


def test_a_step_waits_for_the_one_before() -> None:
    assert not halving_doubling("all_reduce", 8000, one_node(8)).pipelined


def test_what_a_step_brings_is_read_by_the_next() -> None:
    """4 members, 4000 B, steps of 2000, 1000, 1000, 2000: in and out, staging, and all but the last handed over."""
    memory = halving_doubling("all_reduce", 4000, one_node(4)).memory_nbytes
    assert memory.tolist() == [8000 + 2 * 6000 + 2 * 4000] * 4
