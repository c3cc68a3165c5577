"""FSDP from 128 to 2,048 H100, and on one node: what was measured, what is reached, and what is not and why.

Fernandez et al., Hardware Scaling Trends and Diminishing Returns in Large-Scale Distributed Training, 2024 (arXiv
2411.13055): Llama 2 7B under weak scaling with two sequences of 4,096 tokens a GPU. Each GPU loses 37.22 % of its
throughput from 128 to 2,048 GPUs, and from 256 GPUs on tensor parallelism over 2 to 4 GPUs beats pure FSDP.

MosaicML llm-foundry, scripts/train/benchmarking/README.md: MPT 7B, FULL_SHARD, tokens a second and GPU.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

import clustersim as cs
from clustersim.study.point import prepare, run_point

SHORT_STEPS = pytest.mark.xfail(
    strict=True,
    reason="an all-gather of 405 MB over 2,048 ranks takes 4.3 ms here and hides behind 6 ms of forward pass; the loss "
    "that was measured needs more than twice that. A step of a ring takes 1.1 us here in the mean, fitted to a few "
    "nodes: nothing measured says what it is over 256 of them. Kernels of H100 take a third less time here than those "
    "measured under FSDP in 2023 (below)",
)


@cache
def tokens_per_s(num_gpus: int, tp: int = 1) -> float:
    """Of each GPU, in a steady state."""
    changes: dict[str, Any] = {"nodes": num_gpus // 8, "global_batch": 2 * num_gpus, "micro_batch": 2 * tp, "steps": 2}
    changes |= {"plan.tp": tp, "plan.dp": num_gpus // tp}
    found = cs.summary(run_point(prepare(cs.load_job("llama-2-7b-fsdp-h100").with_values(changes))))
    return 4096 * 2 / float(found["step_time_s"])


def test_each_doubling_costs_throughput() -> None:
    rates = [tokens_per_s(n) for n in (128, 256, 512, 1024, 2048)]
    assert rates == sorted(rates, reverse=True)
    losses = [1 - after / before for before, after in pairwise(rates)]
    assert losses == sorted(losses)  # the latency of a ring grows with its ranks, its bytes do not


@SHORT_STEPS
def test_loss_from_128_to_2048() -> None:
    assert tokens_per_s(2048) / tokens_per_s(128) - 1 == pytest.approx(-0.3722, abs=0.05)


@SHORT_STEPS
@pytest.mark.parametrize("num_gpus", [256, 2048])
def test_tensor_parallelism_pays(num_gpus: int) -> None:
    assert max(tokens_per_s(num_gpus, tp) for tp in (2, 4)) > tokens_per_s(num_gpus)


def test_the_latency_of_a_step_decides() -> None:
    """With what NCCL's tuning model has for a ring under Simple, the loss is more than was measured; here it is less.

    3.4 us a step inside a node, 14 us between two: NCCL, ``src/graph/tuning.cc``, ``hwLat``. Tensor parallelism then
    pays as well.
    """

    def rate(num_gpus: int, tp: int = 1) -> float:
        cluster = cs.load_topology("dgx-h100", nodes=num_gpus // 8)
        slow = tuple(
            replace(way, inside_latency=3.4e-6, between_latency=14e-6) if way.name == "Simple" else way
            for way in cluster.protocols["ring"]
        )
        cluster = replace(cluster, protocols={**cluster.protocols, "ring": slow})
        plan = cs.ParallelPlan(tp=tp, fsdp=True, gradient_dtype="bf16")
        model, batch = cs.load_model("llama-2-7b"), 2 * num_gpus
        job = cs.training_step(model, plan, num_devices=num_gpus, global_batch=batch, micro_batch=2 * tp, seq_len=4096)
        pinned = dict.fromkeys(("all_gather", "reduce_scatter"), "ring/Simple")
        return 4096 * 2 / float(cs.summary(cs.simulate(cluster, job, steps=2, algorithms=pinned))["step_time_s"])

    assert rate(2048) / rate(128) - 1 < -0.3722 < tokens_per_s(2048) / tokens_per_s(128) - 1
    assert rate(2048, tp=4) > rate(2048, tp=2) > rate(2048)


def test_tensor_parallelism_loses_less() -> None:
    """What is there of the reason: half the ranks a ring, so half its latency."""
    assert tokens_per_s(2048, 2) / tokens_per_s(128, 2) > tokens_per_s(2048) / tokens_per_s(128)


@pytest.mark.parametrize(
    ("topology", "changes", "measured"),
    [
        pytest.param("dgx-a100", {}, 4641, id="8 A100, 2,048 tokens"),
        pytest.param(
            "dgx-a100",
            {"global_batch": 128, "micro_batch": 8, "seq_len": 8192, "plan.recompute": "full"},
            3206,
            id="8 A100, 8,192 tokens, full recomputation",
        ),
        pytest.param(
            "dgx-h100",
            {"global_batch": 48},
            10643,
            id="8 H100, 2,048 tokens",
            marks=pytest.mark.xfail(
                strict=True, reason="45 % above: kernels of H100 are fitted to later libraries than those of 2023"
            ),
        ),
    ],
)
def test_mpt_7b_on_one_node(topology: str, changes: dict[str, Any], measured: int) -> None:
    """Within a fifth: kernels are fitted to micro-benchmarks of later libraries, and nothing is fitted to a step."""
    setup = cs.load_job("mpt-7b-fsdp").with_values({"topology": topology, "steps": 2} | changes)
    run = run_point(prepare(setup))
    batch, seq_len = setup.value("global_batch"), setup.value("seq_len")
    assert batch * seq_len / cs.summary(run)["step_time_s"] / 8 == pytest.approx(measured, rel=0.2)
