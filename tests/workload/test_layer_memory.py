"""Memory of the layers of the first stage against closed forms of papers, and against what is simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.case import Case
from clustersim.workload.layer_memory import layer_activations, layer_state
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.training_step import training_step

GPT = cs.load_model("gpt-22b")


def case(*, pp: int = 1, vpp: int | None = None, dp: int = 1, **plan: Any) -> Case:
    wanted = ParallelPlan(tp=8, pp=pp, vpp=vpp, dp=dp, attention="unfused", dropout=True, **plan)
    return Case(
        model=GPT,
        plan=wanted,
        global_batch=4 * 2 * pp * dp,
        micro_batch=4,
        seq_len=2048,
        dtype="bf16",
        num_devices=8 * pp * dp,
    )


@pytest.mark.parametrize(("pp", "vpp"), [(1, None), (4, None), (4, 3), (8, 2)])
@pytest.mark.parametrize(
    ("setting", "per_layer"),
    [
        ({"recompute": "none", "sequence_parallel": True}, lambda s, h, a: (34 + 5 * a * s / h) / 8),
        ({"recompute": "selective", "sequence_parallel": True}, lambda s, h, a: 34 / 8),
        ({"recompute": "selective", "sequence_parallel": False}, lambda s, h, a: 10 + 24 / 8),
        ({"recompute": "full", "sequence_parallel": False}, lambda s, h, a: 2),
    ],
)
def test_activations_are_those_of_korthikanti(
    pp: int, vpp: int | None, setting: dict[str, Any], per_layer: Any
) -> None:
    """sbhL/p times what a layer keeps, times 1 + (p - 1)/(p·v) on the first of p stages that have chunks, times p."""
    s, b, h, a, num_layers = 2048, 4, GPT.hidden, GPT.num_heads, GPT.num_layers
    in_flight = 1 if vpp is None else 1 + (pp - 1) / (pp * vpp)
    closed = s * b * h * num_layers * per_layer(s, h, a) * in_flight
    assert layer_activations(case(pp=pp, vpp=vpp, **setting)) == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize(("zero", "bytes_each"), [(0, 18), (1, 6 + 12 / 4), (2, 2 + 16 / 4)])
def test_state_is_that_of_zero(zero: int, bytes_each: float) -> None:
    """12·L·h² parameters and 13·L·h of biases and norms, over tp and pp, each at the bytes of its stage of ZeRO."""
    h, layers = GPT.hidden, GPT.num_layers // 2
    split, everywhere = 12 * h**2 + 7 * h, 6 * h  # norms and the biases of both outputs are whole on each rank of tp
    closed = layers * (split / 8 + everywhere) * bytes_each
    assert layer_state(case(pp=2, dp=4, zero=zero)) == pytest.approx(closed, rel=1e-6)


@pytest.mark.parametrize(("pp", "vpp"), [(4, None), (4, 2)])
def test_a_simulated_first_stage_keeps_as_much(pp: int, vpp: int | None) -> None:
    """Without dropout its embedding keeps nothing but the first layer's input, and its last layer's output leaves."""
    wanted = case(pp=pp, vpp=vpp, recompute="none")
    wanted = replace(wanted, plan=replace(wanted.plan, dropout=False, attention="flash"))
    step = training_step(
        wanted.model, wanted.plan, global_batch=wanted.global_batch, micro_batch=4, seq_len=2048, num_devices=8 * pp
    )
    run = cs.simulate(cs.load_topology("dgx-a100", nodes=pp), step)
    held = cs.analysis.memory(run)
    first = held[(held["rank"] == 0) & (held["category"] == "activations")]
    assert first["nbytes"].max() == layer_activations(wanted)


def test_experts_are_refused() -> None:
    moe = replace(case(), model=cs.load_model("mixtral-8x7b"), plan=ParallelPlan(tp=8, dp=1))
    with pytest.raises(ValueError, match="has them"):
        layer_activations(moe)
    with pytest.raises(ValueError, match="has them"):
        layer_state(moe)
