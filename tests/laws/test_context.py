"""Ranks that share sequences: folded is full, memory and FLOP are split, a ring hides what takes less than a kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.op import Collective, Compute

MODEL = cs.Model(
    name="small",
    num_layers=4,
    hidden=256,
    num_heads=8,
    num_kv_heads=8,
    head_dim=32,
    ffn_hidden=512,
    gated_mlp=True,
    vocab=1024,
    max_seq_len=65536,
    norm="rmsnorm",
    positions="rope",
    tied_embeddings=False,
)
WIDE = replace(MODEL, name="wide", hidden=2048, num_heads=16, num_kv_heads=16, head_dim=128)
CLUSTER = cs.load_topology("dgx-h100", nodes=2)
METHODS = ("zigzag", "ring", "all_gather", "ulysses", "hybrid")


def step(*, seq_len: int = 512, global_batch: int = 8, num_devices: int = 16, **plan: Any) -> cs.Job:
    if plan.get("context") == "hybrid":
        plan["ulysses"] = 2
    return cs.training_step(
        MODEL,
        cs.ParallelPlan(**plan),
        num_devices=num_devices,
        global_batch=global_batch,
        micro_batch=1,
        seq_len=seq_len,
    )


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Plans of 16 ranks that are legal for the model."""
    tp, cp, pp = draw(st.sampled_from([(1, 2, 1), (2, 2, 2), (1, 4, 2), (2, 4, 1), (2, 4, 2), (1, 8, 1), (1, 8, 2)]))
    return {
        "tp": tp,
        "cp": cp,
        "pp": pp,
        "context": draw(st.sampled_from(METHODS)),
        "zero": draw(st.integers(0, 3)),
        "recompute": draw(st.sampled_from(["none", "selective", "full"])),
        "schedule": draw(st.sampled_from(["1f1b", "gpipe", "zb-h1"])) if pp > 1 else None,
        "axis_order": draw(
            st.sampled_from([("tp", "cp", "dp", "pp"), ("cp", "tp", "dp", "pp"), ("dp", "tp", "pp", "cp")])
        ),
    }


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plans())
def test_folded_is_full(times_of: Any, plan: dict[str, Any]) -> None:
    job = step(**plan)
    full, folded = cs.simulate(CLUSTER, job, fold=False), cs.simulate(CLUSTER, job)
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(16))


@pytest.mark.parametrize("method", METHODS)
def test_folded_is_full_with_documents(times_of: Any, method: str) -> None:
    plan: dict[str, Any] = {"cp": 4, "context": method} | ({"ulysses": 2} if method == "hybrid" else {})
    job = cs.training_step(
        MODEL,
        cs.ParallelPlan(tp=2, **plan),
        num_devices=16,
        global_batch=4,
        micro_batch=1,
        seq_len=512,
        seq_lens="lognormal:200:1.5",
    )
    full, folded = cs.simulate(CLUSTER, job, fold=False), cs.simulate(CLUSTER, job)
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(16))
    assert (2 < len(folded.record.lanes) <= 8) if method in ("ring", "all_gather") else len(folded.record.lanes) == 2


@pytest.mark.parametrize("method", METHODS)
def test_attention_of_all_ranks_is_that_of_the_model(method: str) -> None:
    """FLOP of all kernels of all ranks, less what flash attention computes again: one product in seven."""
    job = step(cp=4, context=method, num_devices=4, global_batch=4)
    products = attention = 0
    for k in job.program_of:
        arrays = job.programs[k].arrays()
        for index in arrays.op.tolist():
            op = arrays.ops[index]
            kernels = op.kernels if isinstance(op, Compute) else ()
            products += sum(kernel.flops for kernel in kernels if kernel.kind == "gemm")
            attention += sum(kernel.flops for kernel in kernels if kernel.kind == "attention")
    assert products + attention * 6 // 7 == job.ledger.model_flops


@pytest.mark.parametrize("method", METHODS)
def test_activations_are_split(method: str) -> None:
    """A rank with a quarter of the tokens keeps a quarter; what passes hold beside is a few tensors of one layer."""
    one = _activations(step(num_devices=1, global_batch=1, seq_len=4096))
    share = _activations(step(cp=4, context=method, num_devices=4, global_batch=1, seq_len=4096))
    exchanged = MODEL.num_layers * 2 * 1024 * MODEL.hidden if method == "ulysses" else 0
    assert share == one // 4 + exchanged


def _activations(job: cs.Job) -> int:
    arrays = job.programs[0].arrays()
    key = arrays.memory_keys.index("gpu/activations")
    return int(sum(nbytes for _, _, k, nbytes in arrays.memory.tolist() if k == key and nbytes > 0))


@pytest.mark.parametrize("hides", [True, False], ids=["inside a node", "between nodes"])
def test_a_ring_hides_what_takes_less_than_a_kernel(hides: bool) -> None:
    """With K a kernel and M a message: n kernels take n·K where M < K, else (n - 1)·M + K."""
    run = _alone("zigzag", range(8) if hides else range(0, 64, 8))
    rows = run.trace[(run.trace["layer"] == 1) & (run.trace["phase"] == "forward")]
    kernels = rows[rows["name"] == "attention core forward"].sort_values("start_ns")
    messages = rows[rows["name"] == "send keys and values"]
    assert (len(kernels), len(messages)) == (8, 7)
    kernel, message = _span(kernels.iloc[1:-1]), _span(messages)
    assert (kernel > message) == hides
    expected = _span(kernels.iloc[:1]) + 6 * kernel if hides else 7 * message
    assert kernels["start_ns"].iloc[-1] - kernels["start_ns"].iloc[0] == pytest.approx(expected, rel=0.01)


def test_balance_is_worth_almost_half_of_the_attention() -> None:
    """On one long sequence the last of n contiguous parts has (2·n - 1)/n times the mean."""
    longest = {}
    for method in ("zigzag", "ring"):
        rows = _alone(method, range(8)).trace
        kernels = rows[(rows["layer"] == 1) & (rows["name"] == "attention core forward")]
        busy = (kernels["end_ns"] - kernels["start_ns"]).groupby(kernels["rank"]).sum()
        assert len(busy) == (1 if method == "zigzag" else 8)
        longest[method] = busy.max()
    assert longest["ring"] / longest["zigzag"] == pytest.approx(15 / 8, rel=0.05)


def _alone(method: Any, devices: range) -> cs.Result:
    """One sequence over these GPUs of eight nodes, without collectives that slow kernels."""
    plan = cs.ParallelPlan(cp=len(devices), context=method)
    job = cs.training_step(WIDE, plan, global_batch=1, micro_batch=1, seq_len=65536, devices=devices, num_devices=8)
    return cs.simulate(cs.load_topology("dgx-h100", nodes=8), job, overlap={"sm": 0.0, "hbm": 0.0})


def _span(rows: pd.DataFrame) -> float:
    """Mean duration [ns]."""
    return float((rows["end_ns"] - rows["start_ns"]).mean())


def test_more_messages_backward() -> None:
    """Blocks go round as often as forward, and so do their gradients, one step behind."""
    arrays = step(cp=4, num_devices=4, global_batch=4).programs[0].arrays()
    found = {"cp_forward_out": 0, "cp_backward_out": 0}
    for index in arrays.op.tolist():
        op = arrays.ops[index]
        if isinstance(op, Collective) and op.slot in found:
            found[op.slot] += op.nbytes
    block = 2 * 128 * 2 * MODEL.num_kv_heads * MODEL.head_dim
    assert found["cp_forward_out"] == 4 * MODEL.num_layers * 3 * block
    assert found["cp_backward_out"] == 2 * found["cp_forward_out"]
