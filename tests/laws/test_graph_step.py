"""Any graph, any placement: the job is sound, ends within its bounds, moves each byte both ways, and folds exactly."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.topology.topology import Topology
from clustersim.workload.graph import Estimate, Graph, GraphOp, graph_step

DEVICES, REPLICAS = 3, 2


@pytest.fixture(scope="module")
def node() -> Topology:
    return cs.load_topology("dgx1-v100")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Two to seven ops with placements, outputs, weights and links from earlier to later ones."""
    n = draw(st.integers(2, 7))
    ops = []
    for k in range(n):
        after = draw(st.lists(st.integers(0, k - 1), unique=True, max_size=3)) if k else []
        ops.append(
            GraphOp(
                name=f"op{k}",
                seconds=draw(st.integers(1, 9)) * 1e-4,
                out_nbytes=draw(st.sampled_from([0, 1, 10**5, 3 * 10**6])),
                after=tuple(f"op{j}" for j in after),
                device=draw(st.integers(0, DEVICES - 1)),
                parameters=draw(st.sampled_from([0, 10, 10**6])),
            )
        )
    return Graph(name="any", ops=tuple(ops))


@settings(max_examples=20, deadline=None)
@given(graph=graphs(), ordered=st.booleans(), bucket=st.sampled_from([1, 10**7]))
def test_any_placement_runs_within_its_bounds(
    node: Topology, times_of: Any, graph: Graph, ordered: bool, bucket: int
) -> None:
    job = graph_step(
        graph,
        batch=1,
        devices=DEVICES,
        replicas=REPLICAS,
        estimate=Estimate(bandwidth=2e10) if ordered else None,
        bucket_nbytes=bucket,
    )
    assert cs.check(job) == []
    folded, full = (cs.simulate(node, job, steps=2, fold=fold) for fold in (True, False))
    for rank in range(DEVICES * REPLICAS):
        assert times_of(folded, 0, rank) == times_of(full, 0, rank)

    trace = full.trace[full.trace["step"] == 0]
    busy = [3 * sum(op.seconds or 0 for op in graph.ops if op.device == d) for d in range(DEVICES)]
    assert trace["end_ns"].max() >= 1e9 * max(busy) - 1
    sent, received = (Counter(trace.loc[trace["kind"] == kind, "nbytes"].tolist()) for kind in ("send", "recv"))
    assert sent == received
    forward, back = (
        sum(trace.loc[(trace["kind"] == "send") & (trace["phase"] == phase), "nbytes"])
        for phase in ("forward", "backward")
    )
    assert forward == back
    reduced = trace.loc[trace["kind"] == "all_reduce"].groupby("rank")["nbytes"].sum()
    for rank in range(DEVICES * REPLICAS):
        owned = sum(4 * op.parameters for op in graph.ops if op.device == rank % DEVICES)
        assert reduced.get(rank, 0) == owned
    for program in job.programs:
        memory = program.arrays().memory
        assert np.sum(memory[:, 3]) == 0
