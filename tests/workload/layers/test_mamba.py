"""Mamba mixers: work by version, parameters, what ranks split and sum."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.mamba import mamba, mamba_kept
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

TOKENS, HIDDEN, INNER, STATE = 256, 256, 512, 16
VERSIONS = (
    Mamba(version=1, inner=INNER, state=STATE, dt_rank=16, bias=True),
    Mamba(version=2, inner=INNER, state=STATE, head_dim=32, groups=4, chunk=64),
)


@pytest.fixture(params=VERSIONS, ids=["mamba", "mamba-2"])
def model(request: pytest.FixtureRequest, llama: Model) -> Model:
    none = replace(llama, layout="M" * 8, mamba=request.param, positions="none")
    return replace(none, num_heads=0, num_kv_heads=0, head_dim=0, ffn_hidden=0)


@pytest.fixture
def hybrid(llama: Model) -> Model:
    return replace(llama, layout="M-M*M-M*", mamba=VERSIONS[1], positions="none")


def scan_flops(version: int) -> tuple[int, int]:
    """By tokens and by chunks, forward and backward."""
    if version == 1:
        return 7 * INNER * STATE * TOKENS, 21 * INNER * STATE * TOKENS
    scores, added = 2 * 64 * STATE * 4 * TOKENS, 2 * STATE * INNER * TOKENS
    inside, across = 2 * 64 * INNER * TOKENS, 2 * STATE * INNER * TOKENS
    forward = scores + added + inside + across
    return forward, 2 * forward + scores + added


def test_flops(model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]) -> None:
    assert model.mamba is not None
    matrices = sum(rows * columns for rows, columns in model.mamba.matrices(HIDDEN).values())
    forward, backward = scan_flops(model.mamba.version)
    assert flops(mamba(new_shard(model))) == (2 * TOKENS * matrices + forward, 4 * TOKENS * matrices + backward)


def test_chunks_cost_about_what_the_recurrence_does(model: Model) -> None:
    """Model FLOP are those of the recurrence, whatever the kernels do; for the published widths they are near."""
    wide = Mamba(version=2, inner=5120, state=128, head_dim=64, groups=1, chunk=256)
    chunks = 2 * 256 * 128 + 4 * 128 * 5120 + 2 * 256 * 5120
    assert 0.9 < chunks / wide.scan_flops < 1.25


def test_ranks_split_all_of_it(
    model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    one, two = (mamba(new_shard(model, tp=tp, sequence_parallel=tp > 1)) for tp in (1, 2))
    assert flops(one) == tuple(2 * n for n in flops(two))
    assert one.parameters == model.parameters("mamba")
    assert one.parameters - one.replicated_parameters == 2 * (two.parameters - two.replicated_parameters)
    assert one.replicated_parameters == two.replicated_parameters


def test_version_1_sums_the_states_vectors_over_ranks(model: Model, new_shard: Callable[..., Shard]) -> None:
    assert model.mamba is not None
    block = mamba(new_shard(model, tp=2))
    sent = [p.op.nbytes for way in (block.forward, block.backward) for p in way if isinstance(p.op, Collective)]
    assert sent == ([2 * TOKENS * (16 + 2 * STATE)] * 2 if model.mamba.version == 1 else [])


def test_memory_and_work_grow_with_the_sequence_alone(
    model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    short, long = (mamba(new_shard(model, seq_len=n)) for n in (128, 1024))
    assert long.kept == 8 * short.kept
    assert flops(long) == tuple(8 * n for n in flops(short))


@pytest.mark.parametrize(
    "plan",
    [{"dp": 2, "zero": 3}, {"tp": 2}, {"tp": 4, "sequence_parallel": False}, {"pp": 4, "recompute": "full"}],
)
def test_a_step_ends_and_leaves_nothing(
    model: Model, hybrid: Model, plan: dict[str, Any], run_untimed: Callable[..., Any]
) -> None:
    for given in (model, hybrid):
        whole = ParallelPlan(**{"dp": 1, **plan})
        run = run_untimed(training_step(given, whole, global_batch=8, micro_batch=1, seq_len=64))
        assert run.complete
        assert run.lowest >= 0
        assert not any(run.left.values())


def test_a_hybrid_has_the_sublayer_of_each_letter(hybrid: Model) -> None:
    program = training_step(hybrid, ParallelPlan(dp=1), global_batch=1, micro_batch=1, seq_len=64).programs[0]
    arrays = program.arrays()
    found = {
        int(layer): arrays.ops[k].name.removesuffix(" forward")
        for k, layer in zip(arrays.op, arrays.layer, strict=True)
        if arrays.ops[k].name in ("mamba forward", "attention forward", "mlp forward")
    }
    names = {"M": "mamba", "*": "attention", "-": "mlp"}
    assert found == {layer: names[letter] for layer, letter in enumerate(hybrid.layout)}
    assert program.resident["gpu/weights"] == 2 * hybrid.num_parameters


def test_version_2_convolves_again_in_place_of_keeping(model: Model, new_shard: Callable[..., Shard]) -> None:
    assert model.mamba is not None
    shard = new_shard(model)
    kept = {tensor.name for tensor in mamba_kept(shard)}
    channels = 2 * TOKENS * model.mamba.conv_channels
    block = mamba(shard)
    kernels = [kernel for piece in block.backward if isinstance(piece.op, Compute) for kernel in piece.op.kernels]
    again = [kernel for kernel in kernels if kernel.kind == "memory" and kernel.nbytes == 2 * channels]
    assert ("channels after the convolution" in kept) == (model.mamba.version == 1)
    assert len(again) == (model.mamba.version == 2)
