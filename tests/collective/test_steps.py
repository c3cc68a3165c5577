"""The flows against a step-by-step reference that moves chunks and checks that every member ends with the right ones.

A chunk is a set of contributions: which members' input it holds. Sending adds up the contributions (a reduction) or
replaces them (a copy), so an algorithm that reduces twice or too little, or forwards what it does not have, is seen.
"""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from clustersim.collective.direct import direct
from clustersim.collective.hierarchical import hierarchical
from clustersim.collective.layout import Layout
from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape
from clustersim.collective.tree import double_tree, tree

UNIT = 840  # bytes of the smallest chunk, so that nothing is rounded


class Buffers:
    """Chunks of all members of a group, and the bytes moved between each pair."""

    def __init__(self, n, num_chunks, held=None):
        self.chunk = [
            [Counter({i: 1} if held is None or c in held(i) else {}) for c in range(num_chunks)] for i in range(n)
        ]
        self.moved = Counter()
        self.crossings = Counter()

    def step(self, moves, reduce):
        """All ``moves`` (source, destination, chunk) at once."""
        taken = [self.chunk[a][c].copy() for a, _, c in moves]
        for (a, b, c), what in zip(moves, taken, strict=True):
            assert what, "forwards a chunk it does not hold"
            self.chunk[b][c] = self.chunk[b][c] + what if reduce else what
            self.moved[a, b] += UNIT

    def assert_reduced(self, n, where):
        everyone = Counter(range(n))
        for i, c in where:
            assert self.chunk[i][c] == everyone


def moved(traffic):
    """Bytes by (source, destination), over all phases."""
    total = Counter()
    for phase in traffic.phases:
        for a, b, nbytes in zip(phase.source, phase.destination, phase.nbytes, strict=True):
            total[int(a), int(b)] += int(nbytes)
    return total


def ring_reduce_scatter(buffers, members, blocks):
    """``blocks[i]``: the chunks that ``members[i]`` ends with."""
    n = len(members)
    for step in range(n - 1):
        buffers.step(
            [(members[i], members[(i + 1) % n], c) for i in range(n) for c in blocks[(i - step - 1) % n]], reduce=True
        )


def ring_all_gather(buffers, members, blocks):
    n = len(members)
    for step in range(n - 1):
        buffers.step(
            [(members[i], members[(i + 1) % n], c) for i in range(n) for c in blocks[(i - step) % n]], reduce=False
        )


def turned(order, start):
    """A closed order, from ``start`` on."""
    at = order.index(start)
    return [*order[at:], *order[:at]]


def channels(num_nodes, m, orders):
    """Closed rings, one a lane and order: each enters the first node at member e, follows the order to the member
    before e, and enters the next node at that one."""
    assert num_nodes == 1 or num_nodes % m == 0, "only then does each ring close"
    closed = []
    for order in orders:
        for e in range(m if num_nodes > 1 else 1):
            members, enter = [], e
            for k in range(num_nodes):
                inside = turned(order, enter)
                members += [k * m + i for i in inside]
                enter = inside[-1]
            closed.append(members)
    return closed


def grid(num_nodes, m, orders=()):
    """``num_nodes`` nodes of m members, on meshes whose rings are ``orders``."""
    node = np.repeat(np.arange(num_nodes) * m, m)
    rings = np.array(
        [[k * m + turned(order, i)[1 % m] for k in range(num_nodes) for i in range(m)] for order in orders]
    )
    return GroupShape(node=node, rings=rings if len(orders) else None)


GRIDS = [(1, 2), (1, 3), (1, 8), (4, 1), (5, 1), (2, 2), (4, 2), (3, 3), (4, 4)]
MESHES = {3: [[0, 1, 2], [2, 1, 0]], 4: [[0, 1, 2, 3], [0, 2, 3, 1], [3, 2, 1, 0]], 8: [[0, 2, 4, 6, 1, 3, 5, 7]]}
"""Orders by members of a node; not the ones a search finds, which use all links alike and would hide a mistake."""
LAID_OUT = [pytest.param(*g, (), id=f"{g[0]}x{g[1]}") for g in GRIDS]
LAID_OUT += [
    pytest.param(*g, MESHES[g[1]], id=f"meshes {g[0]}x{g[1]}") for g in [(1, 3), (1, 8), (3, 3), (1, 4), (4, 4)]
]


@pytest.mark.parametrize(("num_nodes", "m", "orders"), LAID_OUT)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter"])
def test_ring(kind, num_nodes, m, orders):
    n = num_nodes * m
    rings = channels(num_nodes, m, orders or [list(range(m))])
    per_ring = n
    num_chunks = per_ring * len(rings)
    mine = [[[r * per_ring + i] for i in range(n)] for r in range(len(rings))]
    owner = {c: rings[r][i] for r in range(len(rings)) for i in range(n) for c in mine[r][i]}
    held = (lambda member: [c for c in owner if owner[c] == member]) if kind == "all_gather" else None
    buffers = Buffers(n, num_chunks, held)
    slowest = 0
    for r, members in enumerate(rings):
        if kind != "all_gather":
            ring_reduce_scatter(buffers, members, mine[r])
        if kind != "reduce_scatter":
            ring_all_gather(buffers, members, mine[r])
        leaves_node = [a // m != members[(i + 1) % n] // m for i, a in enumerate(members)]
        slowest = max(slowest, max(sum(leaves_node) - skipped for skipped in leaves_node))

    if kind == "all_reduce":
        buffers.assert_reduced(n, [(i, c) for i in range(n) for c in range(num_chunks)])
    elif kind == "reduce_scatter":
        buffers.assert_reduced(n, [(owner[c], c) for c in owner])
    else:
        assert all(buffers.chunk[i][c] == Counter([owner[c]]) for i in range(n) for c in owner)
    traffic = ring(kind, num_chunks * UNIT, grid(num_nodes, m, orders))
    assert moved(traffic) == buffers.moved
    passes = 2 if kind == "all_reduce" else 1
    assert sum(phase.num_steps for phase in traffic.phases) == passes * (n - 1)
    if num_nodes > 1:
        assert traffic.phases[-1].num_steps == passes * slowest


@pytest.mark.parametrize(("num_nodes", "m", "orders"), LAID_OUT)
@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_chain(kind, num_nodes, m, orders):
    n = num_nodes * m
    rings = channels(num_nodes, m, orders or [list(range(m))])
    buffers = Buffers(
        n, len(rings), held=None if kind == "reduce" else lambda member: range(len(rings)) if member == 0 else ()
    )
    for r, members in enumerate(rings):
        at = members.index(0)
        chain = members[at:] + members[:at]
        if kind == "reduce":
            chain = chain[1:] + chain[:1]
        for a, b in pairwise(chain):
            buffers.step([(a, b, r)], reduce=kind == "reduce")
    if kind == "reduce":
        buffers.assert_reduced(n, [(0, c) for c in range(len(rings))])
    else:
        assert all(held == Counter([0]) for chunks in buffers.chunk for held in chunks)
    assert moved(ring(kind, len(rings) * UNIT, grid(num_nodes, m, orders))) == buffers.moved


@pytest.mark.parametrize(
    ("num_nodes", "m", "orders"),
    [*LAID_OUT, *((*g, ()) for g in [(2, 1), (2, 8), (3, 2), (6, 2), (7, 1), (9, 3), (16, 2)]), (5, 4, MESHES[4])],
)
@pytest.mark.parametrize("kind", ["all_reduce", "broadcast", "reduce"])
def test_tree(kind, num_nodes, m, orders):
    n = num_nodes * m
    trees = double_tree(num_nodes)
    inside = orders or [list(range(m))]
    num_chunks = 2 * m * len(inside)
    held = None if kind != "broadcast" else lambda member: range(num_chunks) if member == 0 else ()
    buffers = Buffers(n, num_chunks, held)
    slowest = 0
    for chunk in range(num_chunks):
        of_lane, order = divmod(chunk, len(inside))
        lane, half = divmod(of_lane, 2)
        edges = []
        for k in range(num_nodes):
            start = 0 if kind != "all_reduce" and k == 0 else lane
            edges += pairwise([k * m + i for i in turned(inside[order], start)])
        edges += [(int(p) * m + lane, int(c) * m + lane) for c, p in zip(trees[0][half], trees[1][half], strict=True)]
        down = _from_root(edges, root=0 if kind != "all_reduce" else lane)
        assert len(down) == n - 1
        if kind != "broadcast":
            for a, b in reversed(down):
                buffers.step([(b, a, chunk)], reduce=True)
        if kind != "reduce":
            for a, b in down:
                buffers.step([(a, b, chunk)], reduce=False)
        slowest = max(slowest, _depth(down))
    if kind == "broadcast":
        assert all(have == Counter([0]) for chunks in buffers.chunk for have in chunks)
    else:
        reduced = range(n) if kind == "all_reduce" else [0]
        buffers.assert_reduced(n, [(i, c) for i in reduced for c in range(num_chunks)])
    traffic = tree(kind, num_chunks * UNIT, grid(num_nodes, m, orders))
    assert moved(traffic) == buffers.moved
    # chain and tree are each taken at their longest, which need not meet on one path
    assert sum(phase.num_steps for phase in traffic.phases) >= slowest * (2 if kind == "all_reduce" else 1)


def _from_root(edges, root):
    """Edges (parent, child) in order of the parents' distance from the root; only what is reached."""
    ordered, reached = [], [root]
    for parent in reached:
        for a, b in edges:
            if a == parent:
                ordered.append((a, b))
                reached.append(b)
    return ordered


def _depth(down):
    depth = {}
    for a, b in down:
        depth[b] = depth.get(a, 0) + 1
    return max(depth.values(), default=0)


@pytest.mark.parametrize(
    ("num_nodes", "m", "orders"), [*LAID_OUT, *((*g, ()) for g in [(2, 8), (3, 2), (6, 4)]), (2, 4, MESHES[4])]
)
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather", "reduce_scatter"])
def test_hierarchical(kind, num_nodes, m, orders):
    n = num_nodes * m
    rings = orders or [list(range(m))]
    num_chunks = n * len(rings)

    def block_of(k, i):
        """Chunks of member i of node k, one a ring."""
        return [(i * num_nodes + k) * len(rings) + r for r in range(len(rings))]

    buffers = Buffers(n, num_chunks, (lambda j: block_of(j // m, j % m)) if kind == "all_gather" else None)

    def inside(collective):
        for k in range(num_nodes):
            for r, order in enumerate(rings):
                shard = [[block_of(other, i)[r] for other in range(num_nodes)] for i in order]
                collective(buffers, [k * m + i for i in order], shard)

    def between(collective):
        for i in range(m):
            collective(buffers, [k * m + i for k in range(num_nodes)], [block_of(k, i) for k in range(num_nodes)])

    if kind != "all_gather":
        inside(ring_reduce_scatter)
        between(ring_reduce_scatter)
    if kind != "reduce_scatter":
        between(ring_all_gather)
        inside(ring_all_gather)
    if kind == "all_reduce":
        buffers.assert_reduced(n, [(j, c) for j in range(n) for c in range(num_chunks)])
    elif kind == "reduce_scatter":
        buffers.assert_reduced(n, [(j, c) for j in range(n) for c in block_of(j // m, j % m)])
    else:
        assert all(held for chunks in buffers.chunk for held in chunks)
    assert moved(hierarchical(kind, num_chunks * UNIT, grid(num_nodes, m, orders))) == buffers.moved


@pytest.mark.parametrize("n", [2, 3, 8])
def test_direct(n):
    flows = moved(direct("all_to_all", n * UNIT, grid(1, n)))
    assert flows == {(i, j): UNIT for i in range(n) for j in range(n) if i != j}
    assert moved(direct("gather", n * UNIT, grid(1, n))) == {(i, 0): UNIT for i in range(1, n)}
    assert moved(direct("scatter", n * UNIT, grid(1, n))) == {(0, i): UNIT for i in range(1, n)}


@pytest.mark.parametrize("algorithm", [ring, tree, hierarchical])
def test_members_of_a_node_need_not_be_neighbours(algorithm):
    """Renumbering the group renumbers the flows and changes nothing else."""
    blocked, interleaved = grid(3, 4), GroupShape(node=np.tile([0, 1, 2], 4))
    renamed = Layout.of(interleaved).order
    expected = Counter(
        {
            (int(renamed[a]), int(renamed[b])): v
            for (a, b), v in moved(algorithm("all_reduce", 1 << 20, blocked)).items()
        }
    )
    assert moved(algorithm("all_reduce", 1 << 20, interleaved)) == expected
