"""Where the numbers of a run came from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import clustersim as cs
from clustersim.analysis.number_sources import number_sources

H100 = cs.load_topology("dgx-h100", nodes=1)


def step(**plan: Any) -> cs.Job:
    given = cs.ParallelPlan(dp=8, **plan)
    return cs.training_step(cs.load_model("gpt2"), given, global_batch=8, micro_batch=1, seq_len=256)


def test_parts_of_the_cluster_and_the_kernels_in_use_are_told() -> None:
    found = number_sources(H100, cs.simulate(H100, step(attention="flash-3")).record.timed)
    assert found["node.gpu.memory_bandwidth"].startswith("datasheet:")
    assert found["host.cpu.memory_bandwidth"].startswith("datasheet:")
    assert found["communication.node.launch_latency"].startswith("measured:")
    assert found["kernels/h100-sxm.gemm.bf16"].startswith("measured:")
    assert "kernels/h100-sxm.attention.flash-3" in found
    assert not any(key.startswith(("kernels/h100-sxm.gemm.fp8", "kernels/h100-sxm.attention.cudnn")) for key in found)
    assert not any("efficiency.gemm" in key for key in found)


def test_curves_of_size_are_told_where_they_are_used() -> None:
    plain = replace(H100, gpus=tuple(replace(gpu, kernels=None) for gpu in H100.gpus))
    found = number_sources(plain, cs.simulate(plain, step()).record.timed)
    assert "node.gpu.efficiency.gemm_peak" in found
    assert not any(key.startswith("kernels/") for key in found)


def test_a_table_of_own_measurements_is_told() -> None:
    found = number_sources(H100, (), table="mine")
    assert found["kernels/mine.time_us"].startswith("measured: by the user")
