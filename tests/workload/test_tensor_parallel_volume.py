"""What the ranks that share layers send each other in a step, embedding, head and loss included, by closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.training_step import training_step

B, S, H, LAYERS, MICRO_BATCHES = 2, 128, 256, 8, 4
FULL = 2 * B * S * H  # b·s·h elements of 16 bits
LOSS = 3 * 4 * B * S  # row maximum, target logit and sum of exponentials in fp32
NORMS = 4 * H * (2 * LAYERS + 1)  # gradients of two norms a layer and the last one, in fp32

Sent = Callable[..., int]


def program(model: Model, **plan: Any) -> Program:
    batch = {"global_batch": B * MICRO_BATCHES, "micro_batch": B, "seq_len": S}
    (only,) = training_step(model, ParallelPlan(tp=4, dp=1, **plan), **batch).programs
    return only


def test_all_reduces(llama: Model, sent: Sent) -> None:
    """Two a layer and direction; one of the embedding's output, one of the head's input gradient (Megatron-LM)."""
    made = program(llama, sequence_parallel=False)
    assert sent(made, kind="all_reduce", slot="tp") == MICRO_BATCHES * ((4 * LAYERS + 2) * FULL + LOSS)
    assert sent(made, slot="tp") == sent(made, kind="all_reduce", slot="tp")


@pytest.mark.parametrize("overlap_tp", [True, False])
def test_sequence_parallelism(llama: Model, sent: Sent, overlap_tp: bool) -> None:
    """Each all-reduce becomes a reduce-scatter and an all-gather; inputs are gathered again for weight gradients."""
    made = program(llama, overlap_tp=overlap_tp)
    reduced = 4 * LAYERS + 2
    again = 2 * LAYERS + 1
    assert sent(made, kind="reduce_scatter", slot="tp") == MICRO_BATCHES * reduced * FULL
    assert sent(made, kind="all_gather", slot="tp") == MICRO_BATCHES * (reduced + again) * FULL
    assert sent(made, kind="all_reduce", slot="tp") == MICRO_BATCHES * LOSS + NORMS


def test_full_recomputation_sends_the_forward_pass_again(llama: Model, sent: Sent) -> None:
    plain, again = program(llama), program(llama, recompute="full")
    for kind in ("all_gather", "reduce_scatter"):
        more = sent(again, kind=kind, slot="tp") - sent(plain, kind=kind, slot="tp")
        assert more == MICRO_BATCHES * 2 * LAYERS * FULL


def test_a_ring_of_exchanges_takes_the_place_of_what_it_hides(llama: Model, sent: Sent) -> None:
    """Three quarters of each collective that stands beside a product of a layer, from every one of four ranks.

    What weight gradients hide stays whole: inputs gathered again and reduced input gradients; and so do the embedding
    and the head.
    """
    made = program(llama, tp_overlap="ring")
    assert sent(made, kind="all_to_all", slot="tp") == MICRO_BATCHES * 6 * LAYERS * FULL * 3 // 4
    assert sent(made, kind="all_gather", slot="tp") == MICRO_BATCHES * (2 * LAYERS + 3) * FULL
    assert sent(made, kind="reduce_scatter", slot="tp") == MICRO_BATCHES * (2 * LAYERS + 2) * FULL
