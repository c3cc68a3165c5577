"""What it costs to bring weights to each pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustersim as cs
from clustersim.study.weight_flow import flow_efficiency, tokens_for_efficiency
from clustersim.workload.offload import SuperOffload

GH200 = {"bandwidth": 450e9, "flop_per_s": 990e12}


def test_a_gh200_by_hand() -> None:
    """450 GB/s against 990 TFLOP/s: half at 2,200 tokens, above 60 % from 3,300 on, which is the policy's default."""
    assert flow_efficiency(2200, **GH200) == pytest.approx(0.5)
    assert tokens_for_efficiency(0.6, **GH200) == pytest.approx(SuperOffload().flow_from)
    assert flow_efficiency(2200, bandwidth=25e9, flop_per_s=990e12) < 0.06  # over PCIe 4.0


@given(st.floats(0.01, 0.99), st.floats(1e9, 1e12), st.floats(1e12, 1e16))
def test_the_two_are_inverse(efficiency: float, bandwidth: float, flop_per_s: float) -> None:
    tokens = tokens_for_efficiency(efficiency, bandwidth=bandwidth, flop_per_s=flop_per_s)
    assert flow_efficiency(tokens, bandwidth=bandwidth, flop_per_s=flop_per_s) == pytest.approx(efficiency)


@pytest.mark.parametrize("tokens", [512, 1024, 2048, 4096, 8192])
def test_a_step_is_between_the_formula_and_full_overlap(tokens: int) -> None:
    """The passes of a simulated step, with weights on the host over those with weights at hand.

    The formula has copies and kernels one after the other; with copies beside kernels the longer of the two remains.
    """
    model = cs.load_model("superoffload-5b")
    topology = cs.load_topology("gh200")
    link = min(float(topology.resources.capacity[row]) for row in topology.local["h2d"].rows[0] if row >= 0)
    seconds = []
    for weights in ("gpu", "host"):
        plan = cs.ParallelPlan(recompute="full", offload=SuperOffload(weights=weights))
        batch = tokens // 512
        job = cs.training_step(model, plan, global_batch=batch, micro_batch=batch, seq_len=512, num_devices=1)
        trace = cs.simulate(topology, job, steps=3).trace
        passes = trace[(trace["step"] == 1) & (trace["phase"] == "forward") & (trace["stream"] == "compute")]
        seconds.append((passes["end_ns"].max() - passes["start_ns"].min()) / 1e9)
    at_hand, flowing = seconds
    copies = 2 * model.num_parameters / link
    assert max(at_hand, copies) * 0.9 <= flowing <= (at_hand + copies) * 1.1
