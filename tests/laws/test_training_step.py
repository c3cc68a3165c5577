"""The laws on what people run: training steps of a small model on the library's clusters."""

from __future__ import annotations

from typing import Any

import pytest

import clustersim as cs

MODEL = cs.Model(
    name="small",
    num_layers=8,
    hidden=512,
    num_heads=8,
    num_kv_heads=8,
    head_dim=64,
    ffn_hidden=2048,
    gated_mlp=False,
    vocab=4096,
    max_seq_len=512,
    norm="layernorm",
    positions="learned",
    tied_embeddings=True,
)

PLANS: dict[str, dict[str, Any]] = {
    "1f1b": {"tp": 8, "pp": 4, "dp": 2},
    "gpipe, recompute": {"tp": 2, "pp": 4, "dp": 8, "schedule": "gpipe", "recompute": "full"},
    "interleaved, zero": {"tp": 4, "pp": 2, "dp": 8, "vpp": 2, "zero": 1},
    "dp inside": {"tp": 4, "pp": 2, "dp": 8, "axis_order": ("dp", "tp", "cp", "pp")},
}
CLUSTERS = ("dgx-h100", "dgx1-v100", "frontier", "gh200-quad", "dgx2-v100")


def step(plan: dict[str, Any]) -> cs.Job:
    return cs.training_step(MODEL, cs.ParallelPlan(**plan), global_batch=32, micro_batch=1, seq_len=512, dtype="fp16")


def cluster(name: str) -> cs.Topology:
    """64 GPUs of it."""
    per_node = cs.load_topology(name, nodes=1).num_devices
    return cs.load_topology(name, nodes=64 // per_node)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", CLUSTERS)
def test_folded_is_full(name: str, plan: str, times_of: Any) -> None:
    topology, job = cluster(name), step(PLANS[plan])
    full = cs.simulate(topology, job, fold=False)
    folded = cs.simulate(topology, job)
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(64))
    assert len(folded.record.lanes) <= 64


def test_folded_is_full_with_a_straggler_and_a_slow_link(times_of: Any) -> None:
    topology, job = cluster("dgx-h100"), step(PLANS["interleaved, zero"])
    nic = next(name for name in topology.resources.names() if "nic" in name)
    perturb = {"slow_ranks": {13: 1.4}, "slow_links": {nic: 0.25}}
    full = cs.simulate(topology, job, fold=False, steps=2, perturb=perturb)
    folded = cs.simulate(topology, job, steps=2, perturb=perturb)
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(64))
    assert len(folded.record.lanes) < 64


def test_one_class_a_stage_on_a_symmetric_cluster() -> None:
    """8 GPUs a node, tp inside the node, stages on whole nodes."""
    run = cs.simulate(cluster("dgx-h100"), step(PLANS["1f1b"]))
    assert [lane.multiplicity for lane in run.record.lanes] == [16] * 4
