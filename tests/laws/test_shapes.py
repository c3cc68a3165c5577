"""Any shape of a decoder against counts from its matrices: FLOP of a step, parameters, and what a rank holds.

Shapes in which counts often go wrong are drawn on purpose: MLPs with and without a gate, heads that are not
hidden / num_heads wide, fewer key heads than query heads, vocabularies that ranks do not share evenly, and masks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.hardware.kernel import Kernel
from clustersim.workload.op import Compute

SEQUENCES, TOKENS = 4, 256


@st.composite
def models(draw: st.DrawFn) -> cs.Model:
    kv_heads = draw(st.sampled_from([2, 4]))
    return cs.Model(
        name="drawn",
        num_layers=draw(st.integers(1, 3)),
        hidden=16 * draw(st.integers(1, 40)),
        num_heads=kv_heads * draw(st.integers(1, 4)),
        num_kv_heads=kv_heads,
        head_dim=draw(st.sampled_from([8, 40, 96, 128, 256])),
        ffn_hidden=4 * draw(st.integers(1, 300)),
        gated_mlp=draw(st.booleans()),
        vocab=draw(st.integers(16, 3000)),
        max_seq_len=TOKENS,
        norm="rmsnorm",
        positions="rope",
        tied_embeddings=draw(st.booleans()),
        causal=draw(st.booleans()),
    )


def layer_matrices(model: cs.Model) -> int:
    """Elements of a layer's matrices: queries, keys, values, output, and two of the MLP or three with a gate."""
    h, d = model.hidden, model.head_dim
    attention = h * model.num_heads * d + 2 * h * model.num_kv_heads * d + model.num_heads * d * h
    return attention + (3 if model.gated_mlp else 2) * h * model.ffn_hidden


def rows_of_vocabulary(model: cs.Model, tp: int) -> int:
    """Whole where tp ranks share it evenly, else filled up to the next multiple of 128 · tp."""
    return model.vocab if model.vocab % tp == 0 else -(-model.vocab // (128 * tp)) * 128 * tp


def kernels(model: cs.Model, tp: int, attention: str = "flash") -> Iterator[tuple[Kernel, int]]:
    """Kernels of one rank's step and how often it launches each."""
    plan = cs.ParallelPlan(tp=tp, attention=attention)
    job = cs.training_step(model, plan, global_batch=SEQUENCES, micro_batch=2, seq_len=TOKENS, num_devices=tp)
    (program,) = job.programs
    arrays = program.arrays()
    times = np.bincount(arrays.op, minlength=len(arrays.ops)).tolist()
    for op, count in zip(arrays.ops, times, strict=True):
        for kernel in op.kernels if isinstance(op, Compute) else ():
            yield kernel, count * kernel.count


@settings(max_examples=60, deadline=None)
@given(models(), st.sampled_from([1, 2]))
def test_products_are_those_of_the_matrices(model: cs.Model, tp: int) -> None:
    """Two FLOP a weight and token forward, four backward; the head's over the vocabulary as it is padded."""
    weights = model.num_layers * layer_matrices(model) + model.hidden * rows_of_vocabulary(model, tp)
    done = sum(n * kernel.flops for kernel, n in kernels(model, tp) if kernel.kind == "gemm")
    assert tp * done == 6 * SEQUENCES * TOKENS * weights
    shaped = [kernel for kernel, _ in kernels(model, tp) if kernel.kind == "gemm"]
    assert all(kernel.flops == 2 * kernel.m * kernel.n * kernel.k * kernel.batch for kernel in shaped)


@settings(max_examples=60, deadline=None)
@given(models(), st.sampled_from([1, 2]))
def test_fused_attention_is_over_the_pairs_that_see_each_other(model: cs.Model, tp: int) -> None:
    """Four FLOP a pair and column forward, ten backward; a causal mask leaves half of the square, for every head."""
    pairs = TOKENS * TOKENS // (2 if model.causal else 1)
    each = SEQUENCES * model.num_layers * pairs * model.num_heads * model.head_dim
    found = {False: 0, True: 0}
    for kernel, n in kernels(model, tp):
        if kernel.kind == "attention":
            found[kernel.backward] += tp * n * kernel.flops
            assert (kernel.k, kernel.m, kernel.n) == (model.head_dim, TOKENS, TOKENS)
    assert found == {False: 4 * each, True: 10 * each}


@settings(max_examples=60, deadline=None)
@given(models())
def test_mfu_counts_the_model_and_neither_padding_nor_scores_computed_again(model: cs.Model) -> None:
    job = cs.training_step(
        model, cs.ParallelPlan(tp=2), global_batch=SEQUENCES, micro_batch=2, seq_len=TOKENS, num_devices=2
    )
    weights = model.num_layers * layer_matrices(model) + model.hidden * model.vocab
    square = 12 * model.num_layers * TOKENS * model.num_heads * model.head_dim
    tokens = SEQUENCES * TOKENS
    assert job.ledger.model_flops_full_attention == tokens * (6 * weights + square)
    assert job.ledger.model_flops == tokens * (6 * weights + square // (2 if model.causal else 1))


@settings(max_examples=60, deadline=None)
@given(models(), st.sampled_from([1, 2]))
def test_parameters_are_published_unpadded_and_held_padded(model: cs.Model, tp: int) -> None:
    copies = 1 if model.tied_embeddings else 2
    norms = (2 * model.num_layers + 1) * model.hidden
    layers = model.num_layers * layer_matrices(model)
    assert model.num_parameters == layers + norms + copies * model.hidden * model.vocab
    job = cs.training_step(model, cs.ParallelPlan(tp=tp), global_batch=4, micro_batch=1, seq_len=TOKENS, num_devices=tp)
    (program,) = job.programs
    table = copies * model.hidden * rows_of_vocabulary(model, tp)
    # bf16 weights, fp32 gradients, and an fp32 copy with two moments; norms stand on every rank.
    held = {"weights": 2, "gradients": 4, "optimizer": 12}
    mine = norms + (layers + table) // tp
    assert {name: program.resident[f"gpu/{name}"] for name in held} == {name: n * mine for name, n in held.items()}


@settings(max_examples=30, deadline=None)
@given(models())
def test_keys_and_queries_are_kept_as_wide_as_the_heads_are(model: cs.Model) -> None:
    """A head twice as wide keeps as much more as its queries, keys, values and output are wider, whatever hidden is."""

    def kept(model: cs.Model) -> int:
        job = cs.training_step(model, cs.ParallelPlan(), global_batch=1, micro_batch=1, seq_len=TOKENS, num_devices=1)
        arrays = job.programs[0].arrays()
        keys = {number for number, key in enumerate(arrays.memory_keys) if key.endswith("/activations")}
        return sum(int(row[3]) for row in arrays.memory if int(row[2]) in keys and row[3] > 0)

    wider = replace(model, head_dim=2 * model.head_dim)
    columns = 2 * (model.num_heads + model.num_kv_heads) * model.head_dim
    assert kept(wider) - kept(model) == 2 * TOKENS * model.num_layers * columns
