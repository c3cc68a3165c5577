"""Edges that others imply leave the graph; what waits for what, at last, does not change."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from clustersim.engine.role.flat import flatten
from clustersim.workload.op import Delay
from clustersim.workload.program import Program


def program(rng: np.random.Generator, num_ops: int, num_streams: int) -> Program:
    """Ops on random streams, each behind a few random ones before it; some are put behind later ones afterwards."""
    made = Program()
    op = Delay(name="op", kind="delay", measured_ns=1)
    for number in range(num_ops):
        after = rng.choice(number, size=min(number, int(rng.integers(0, 4))), replace=False).tolist()
        made.add(op, stream=f"{rng.integers(num_streams)}", after=after)
    first = made.add(op, stream="host")
    for _ in range(num_ops // 4):
        made.depend(int(rng.integers(num_ops)), after=[first])
        first = made.add(op, stream="host")
    made.carry(num_ops - 1, 0)
    return made


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_the_order_stays_the_same(seed: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    flat = flatten(program(rng, 30, 1 + seed % 4).arrays(), rounds)
    whole: nx.DiGraph[int] = nx.DiGraph(flat.edges.tolist())
    direct: nx.DiGraph[int] = nx.DiGraph(flat.direct.tolist())
    direct.add_nodes_from(whole)
    assert nx.is_directed_acyclic_graph(whole)
    assert nx.transitive_closure_dag(direct).edges == nx.transitive_closure_dag(whole).edges
    assert set(nx.transitive_reduction(whole).edges) <= set(map(tuple, flat.direct.tolist()))


def test_a_way_along_a_stream_implies_an_edge() -> None:
    """The second message waits for the first, which the kernel before it waited for, two kernels earlier."""
    op, made = Delay(name="op", kind="delay", measured_ns=1), Program()
    first = made.add(op, stream="message")
    kernels = [made.add(op, stream="kernel", after=[first])]
    kernels += [made.add(op, stream="kernel") for _ in range(2)]
    second = made.add(op, stream="message", after=[kernels[-1]])
    direct = flatten(made.arrays(), 1).direct.tolist()
    assert direct == [[first, kernels[0]], *map(list, pairwise(kernels)), [kernels[-1], second]]
