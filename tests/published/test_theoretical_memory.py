"""Memory as Megatron-LM reports it before training, ``megatron/training/theoretical_memory_usage.py``.

Its formulas, with L layers of width h, inner width f, a heads of which G groups share keys and values, a vocabulary V,
sequences of s tokens in micro-batches of b, over t, p and d ranks ::

    parameters        2·L·h²·((1 + G/a) + f/h·(3/2 if gated) + 1/h + 1/(2·L·h)) + V·h·(2 if untied)
    bytes each        18, or 6 + 12/d with the distributed optimizer
    activations       s·b·h·(18 + 4·f/h)·L/t, times 1 + (p - 1)/(p·v) with v chunks a stage

The first stage holds L/p of the layers and one embedding; positions are left out. The formula of activations is for
GELU, dropout, sequence parallelism and a core that is computed again or never written; it adds the embedding's dropout
mask, s·b·h/t for each of p micro-batches.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import clustersim as cs

GPT, LLAMA = (replace(cs.load_model(name), num_layers=24, positions="rope") for name in ("gpt-22b", "llama-2-70b"))


@cache
def run(model: cs.Model, **plan: Any) -> cs.Result:
    wanted = cs.ParallelPlan(tp=8, dp=2, **plan)
    nodes = 2 * wanted.pp
    step = cs.training_step(model, wanted, global_batch=2 * 2 * wanted.pp * 2, micro_batch=2, seq_len=2048)
    return cs.simulate(cs.load_topology("dgx-a100", nodes=nodes), step)


@pytest.mark.parametrize("model", [GPT, LLAMA], ids=lambda model: model.name)
@pytest.mark.parametrize(("zero", "bytes_each"), [(0, 18), (1, 6 + 12 / 2)])
@pytest.mark.parametrize("pp", [1, 4])
def test_weights_and_optimizer_of_the_first_stage(model: cs.Model, zero: int, bytes_each: float, pp: int) -> None:
    h, f, layers = model.hidden, model.ffn_hidden, model.num_layers
    shared = model.num_kv_heads / model.num_heads
    inside = 2 * layers * h**2 * (1 + shared + f / h * (3 / 2 if model.gated_mlp else 1) + 1 / h + 1 / (2 * layers * h))
    embeddings = 1 if pp > 1 or model.tied_embeddings else 2
    closed = (inside / pp + embeddings * model.vocab * h) / 8 * bytes_each
    lanes = run(model, pp=pp, zero=zero).record.lanes
    resident = lanes[0].arrays.resident
    assert lanes[0].rank == 0
    assert sum(resident.values()) == pytest.approx(closed, rel=2e-3)  # biases, and norms that each rank of tp holds


@pytest.mark.parametrize(("pp", "vpp"), [(4, None), (4, 2)])
def test_activations_of_the_first_stage(pp: int, vpp: int | None) -> None:
    plan: dict[str, Any] = {"recompute": "selective", "attention": "unfused", "dropout": True}
    held = cs.analysis.memory(run(GPT, pp=pp, vpp=vpp, **plan))
    first = held[(held["rank"] == 0) & (held["category"] == "activations")]["nbytes"].max()
    s, b, h, layers = 2048, 2, GPT.hidden, GPT.num_layers
    in_flight = 1 if vpp is None else 1 + (pp - 1) / (pp * vpp)
    closed = (s * b * h * (18 + 4 * GPT.ffn_hidden / h) * layers * in_flight + s * b * h * pp * in_flight) / 8
    assert first == pytest.approx(closed, rel=3e-3)  # its masks are in flight only where the first chunk is
