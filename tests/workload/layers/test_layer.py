"""Layers that are not one norm before each of two sublayers: what they compute, hold and send."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.layer import Layers
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shape.sliding_window import SlidingWindow
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

NewShard = Callable[..., Shard]
LAYERS, MICRO_BATCHES, FULL = 8, 4, 2 * 2 * 64 * 256  # bytes of R x h of a micro-batch


def step(model: Model, **plan: Any) -> Any:
    whole = ParallelPlan(**{"dp": 1, **plan})
    return training_step(model, whole, global_batch=2 * MICRO_BATCHES, micro_batch=2, seq_len=64)


def kinds(model: Model, new_shard: NewShard) -> list[str]:
    return [block.kind for block in Layers(new_shard(model))[0]]


def flops(blocks: list[Block]) -> int:
    return sum(p.op.flops for b in blocks for p in (*b.forward, *b.backward) if isinstance(p.op, Compute))


class TestParallelResidual:
    @pytest.fixture
    def two_norms(self, gpt: Model) -> Model:
        return replace(gpt, parallel_residual=True, tied_embeddings=False)

    @pytest.fixture
    def one_norm(self, two_norms: Model) -> Model:
        return replace(two_norms, shared_norm=True)

    def test_work_and_weights_are_those_of_a_plain_layer(
        self, gpt: Model, one_norm: Model, two_norms: Model, new_shard: NewShard
    ) -> None:
        plain, two, one = (list(Layers(new_shard(model))[0]) for model in (gpt, two_norms, one_norm))
        assert flops(one) == flops(two) == flops(plain)
        parameters = [sum(block.parameters for block in layer) for layer in (plain, two, one)]
        assert parameters == [parameters[0], parameters[0], parameters[0] - 2 * 256]

    @pytest.mark.parametrize("sequence_parallel", [False, True])
    def test_outputs_are_summed_over_ranks_once_a_layer(
        self, gpt: Model, one_norm: Model, two_norms: Model, sequence_parallel: bool, sent: Callable[..., int]
    ) -> None:
        """Input gradients once for each norm."""
        kind = "reduce_scatter" if sequence_parallel else "all_reduce"
        each = LAYERS * MICRO_BATCHES * FULL

        def reduced(model: Model, name: str) -> int:
            program = step(model, tp=2, sequence_parallel=sequence_parallel).programs[0]
            return sum(
                sent(program, kind=kind, slot="tp", name=f"{block} {name}")
                for block in ("attention", "mlp", "parallel")
            )

        assert [reduced(model, "output") for model in (gpt, two_norms, one_norm)] == [2 * each, each, each]
        assert [reduced(model, "input gradient") for model in (gpt, two_norms, one_norm)] == [2 * each, 2 * each, each]

    def test_one_norm_gathers_once(self, one_norm: Model, two_norms: Model, sent: Callable[..., int]) -> None:
        def gathered(model: Model) -> int:
            program = step(model, tp=2).programs[0]
            blocks = ("attention input", "mlp input", "parallel input")
            return sum(sent(program, kind="all_gather", slot="tp", name=name) for name in blocks)

        assert gathered(two_norms) == 2 * gathered(one_norm) == 4 * LAYERS * MICRO_BATCHES * FULL

    @pytest.mark.parametrize(
        "plan",
        [
            {"tp": 2},
            {"tp": 2, "sequence_parallel": False},
            {"pp": 2, "schedule": "zb-h1"},
            {"recompute": "selective", "recompute_modules": ("norm", "core", "activation")},
            {"tp": 2, "recompute": "full", "overlap_tp": False},
        ],
    )
    def test_a_step_ends_and_leaves_nothing(
        self, one_norm: Model, two_norms: Model, plan: dict[str, Any], run_untimed: Callable[..., Any]
    ) -> None:
        for model in (one_norm, two_norms):
            run = run_untimed(step(model, **plan))
            assert run.complete
            assert run.lowest >= 0
            assert not any(run.left.values())

    def test_what_both_read_is_kept_once(self, one_norm: Model, two_norms: Model, new_shard: NewShard) -> None:
        one, two = (sum(b.kept for b in Layers(new_shard(model))[0]) for model in (one_norm, two_norms))
        assert two - one == 2 * 2 * 128 * 256
        norm = Recomputation.of("selective", modules=("norm",))
        (block,) = (b for b in Layers(new_shard(one_norm))[0] if b.kind == "parallel")
        assert block.kept - block.held(norm) == 2 * 2 * 128 * 256


class TestPostNorms:
    def test_each_sublayer_has_a_second_norm_which_keeps_its_input(self, llama: Model, new_shard: NewShard) -> None:
        model = replace(llama, post_norms=True)
        assert kinds(model, new_shard) == [
            "norm",
            "attention",
            "post norm",
            "norm",
            "mlp",
            "post norm",
            "residual",
        ]
        plain, more = (sum(b.kept for b in Layers(new_shard(m))[0]) for m in (llama, model))
        assert more - plain == 2 * (2 * 2 * 128 * 256)

    def test_a_step_ends_and_leaves_nothing(self, llama: Model, run_untimed: Callable[..., Any]) -> None:
        run = run_untimed(step(replace(llama, post_norms=True), tp=2, pp=2))
        assert run.complete
        assert not any(run.left.values())


class TestWindows:
    def test_layers_differ_by_their_window_alone(self, llama: Model, new_shard: NewShard) -> None:
        model = replace(llama, window=SlidingWindow(tokens=32, full_every=2))
        layers = Layers(new_shard(model))
        sliding, full = flops(list(layers[0])), flops(list(layers[1]))
        s, w = 128, 32
        hidden = s * s // 2 - (s * w - w * w // 2)  # pairs
        assert full - sliding == 7 * 2 * 2 * 8 * 32 * hidden  # seven products over two sequences
        assert layers[2] is layers[0]

    def test_a_window_that_holds_the_sequence_is_none(self, llama: Model, new_shard: NewShard) -> None:
        assert flops(list(Layers(new_shard(replace(llama, window=SlidingWindow(tokens=128))))[0])) == flops(
            list(Layers(new_shard(llama))[0])
        )


def test_a_token_that_sees_all_others_works_twice(llama: Model, new_shard: NewShard) -> None:
    causal, both = (flops([attention(new_shard(replace(llama, causal=c)))]) for c in (True, False))
    assert both - causal == 7 * 2 * 2 * 8 * 32 * 128 * 128 // 2


def test_sinks_are_a_number_a_head(llama: Model, new_shard: NewShard) -> None:
    plain, sinks = (attention(new_shard(replace(llama, attention_sinks=s), tp=2)) for s in (False, True))
    assert sinks.parameters - plain.parameters == 4
    assert sinks.replicated_parameters == plain.replicated_parameters


def test_relative_positions_are_a_matrix_a_head_that_kernels_read(llama: Model, new_shard: NewShard) -> None:
    def nbytes(model: Model) -> tuple[int, int]:
        block = attention(new_shard(model))
        forward, backward = (
            sum(p.op.nbytes for p in way if isinstance(p.op, Compute)) for way in (block.forward, block.backward)
        )
        return forward, backward

    plain = nbytes(replace(llama, positions="none"))
    relative = nbytes(replace(llama, positions="relative", relative_buckets=32))
    matrix = 2 * 2 * 8 * 128 * 128
    assert (relative[0] - plain[0], relative[1] - plain[1]) == (matrix, 2 * matrix)
