"""Activations that the stages of a pipeline hold, in the units and to the formulas of the schedules' papers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import clustersim as cs
from clustersim.workload.activations import kept_by_layer
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard

MODEL = cs.Model(
    name="equal layers",
    num_layers=32,
    hidden=1024,
    num_heads=8,
    num_kv_heads=8,
    head_dim=128,
    ffn_hidden=4096,
    gated_mlp=False,
    vocab=1024,
    max_seq_len=2048,
    norm="layernorm",
    positions="rope",
    tied_embeddings=False,
)
P, M = 8, 32
"""Stages and micro-batches."""


def peaks(schedule: str, vpp: int | None) -> list[float]:
    """Highest activation memory of each stage, in what one micro-batch keeps in one chunk."""
    plan = cs.ParallelPlan(pp=P, schedule=schedule, vpp=vpp)
    step = cs.training_step(MODEL, plan, num_devices=P, global_batch=M, micro_batch=1, seq_len=2048)
    memory = cs.analysis.memory(cs.simulate(cs.load_topology("dgx-h100", nodes=1), step))
    highest = memory[memory["category"] == "activations"].groupby("rank")["nbytes"].max()
    layer = kept_by_layer(Shard(model=MODEL, micro_batch=1, seq_len=2048), Recomputation())
    copies = 2 if schedule == "dualpipe" else 1
    chunk = layer * MODEL.num_layers * copies / (P * (step.plan["vpp"] or 1))
    return [float(nbytes) / chunk for nbytes in highest]


@pytest.mark.parametrize(
    ("schedule", "vpp", "expected"),
    [
        pytest.param("gpipe", None, lambda s: M, id="GPipe, section 2.3: all micro-batches"),
        pytest.param("1f1b", None, lambda s: P - s, id="PipeDream-Flush: p - s"),
        pytest.param("interleaved", 2, lambda s: 2 * (P - 1 - s) + P + 1, id="Megatron-LM: 2(p-1-s) + (v-1)p + 1"),
        pytest.param("zb-h1", None, lambda s: P, id="Zero Bubble, table 2: p M_B"),
        pytest.param("zb-h2", None, lambda s: 2 * P - 1, id="Zero Bubble, table 2: (2p-1) M_B"),
        pytest.param("zb-v", None, lambda s: 2 * P, id="Controllable Memory: flat, as much as 1F1B's first stage"),
        pytest.param("v-half", None, lambda s: P + 2, id="Controllable Memory: half of that, and one"),
    ],
)
def test_each_stage(schedule: str, vpp: int | None, expected: Callable[[int], int]) -> None:
    found = peaks(schedule, vpp)
    for stage, peak in enumerate(found[:-1]):  # the last also keeps the logits
        assert peak == pytest.approx(expected(stage), rel=0.02), stage


def test_dualpipe_is_flat() -> None:
    """PP + 1 chunks at most, and no stage far below: DeepSeek-V3, table 2; the gaps are its own, one chunk."""
    found = peaks("dualpipe", None)
    assert max(found) == pytest.approx(P + 1, rel=0.02)
    assert min(found) == pytest.approx(P, rel=0.02)
