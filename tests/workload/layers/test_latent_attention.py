"""Latent attention: its work, what ranks hold and send, and what its recompute module leaves."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.latent_attention import latent_attention
from clustersim.workload.layers.piece import Piece
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shape.latent_attention import LatentAttention
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

NARROW, ROPE, NOPE, VALUE, HEADS, HIDDEN = 64 + 96, 16, 32, 24, 8, 256


@pytest.fixture(params=[96, None], ids=["queries from a narrow vector", "queries from the stream"])
def model(request: pytest.FixtureRequest, llama: Model) -> Model:
    latent = LatentAttention(kv_rank=64, nope_dim=NOPE, rope_dim=ROPE, value_dim=VALUE, q_rank=request.param)
    return replace(llama, num_kv_heads=HEADS, head_dim=NOPE + ROPE, latent=latent)


def collectives(block: Block) -> tuple[dict[str, int], dict[str, int]]:
    """Payload by name, forward and backward."""

    def of(way: tuple[Piece, ...]) -> dict[str, int]:
        return {p.op.name: p.op.nbytes for p in way if isinstance(p.op, Collective)}

    return of(block.forward), of(block.backward)


def test_flops(model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]) -> None:
    rows, s = 2 * 128, 128
    assert model.latent is not None
    matrices = sum(m * n for m, n in model.latent.matrices(HIDDEN, HEADS).values())
    core = 2 * 2 * HEADS * s * s * (NOPE + ROPE + VALUE)
    forward, backward = flops(latent_attention(new_shard(model, attention="unfused")))
    assert forward == 2 * rows * matrices + core
    assert backward == 2 * forward
    flash = flops(latent_attention(new_shard(model)))
    assert flash[0] == forward - core // 2
    assert flash[1] == backward - core + 2 * HEADS * s * s * (NOPE + ROPE)  # the scores again, half the square


def test_ranks_split_heads_and_repeat_what_is_narrow(model: Model, new_shard: Callable[..., Shard]) -> None:
    one, two = (latent_attention(new_shard(model, tp=tp, sequence_parallel=tp > 1)) for tp in (1, 2))
    assert one.parameters == model.parameters("latent_attention")
    assert one.replicated_parameters == two.replicated_parameters
    assert 2 * (two.parameters - two.replicated_parameters) == one.parameters - one.replicated_parameters


def test_sequence_parallel_splits_all_work(
    model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    one, two = (flops(latent_attention(new_shard(model, tp=tp, sequence_parallel=tp > 1))) for tp in (1, 2))
    assert one == (2 * two[0], 2 * two[1])


def test_narrow_vectors_are_gathered_and_their_gradients_reduced(model: Model, new_shard: Callable[..., Shard]) -> None:
    assert model.latent is not None
    columns = model.latent.kv_rank + ROPE + (model.latent.q_rank or 0)
    narrow, full = 2 * 256 * columns, 2 * 256 * HIDDEN
    forward, backward = collectives(latent_attention(new_shard(model, tp=2, sequence_parallel=True)))
    stream = {} if model.latent.q_rank else {"all-gather latent attention input": full}
    assert forward == stream | {"all-gather narrow vectors": narrow}
    assert backward["reduce-scatter narrow gradients"] == narrow
    assert ("reduce-scatter latent attention input gradient" in backward) == (model.latent.q_rank is None)
    forward, backward = collectives(latent_attention(new_shard(model, tp=2)))
    assert not forward
    assert backward["all-reduce narrow gradients"] == narrow


def test_up_projections_again_instead_of_heads_kept(model: Model, new_shard: Callable[..., Shard]) -> None:
    block = latent_attention(new_shard(model))
    up = Recomputation.of("selective", modules=("mla_up",))
    assert block.kept - block.held(up) == 2 * 256 * HEADS * (2 * (NOPE + ROPE) + VALUE)
    (part,) = block.again(up)
    assert model.latent is not None
    split = (m * n for name, (m, n) in model.latent.matrices(HIDDEN, HEADS).items() if name in ("q", "q_up", "kv_up"))
    assert isinstance(part.op, Compute)
    assert part.op.flops == 2 * 256 * sum(split)


@pytest.mark.parametrize(
    "plan",
    [
        {"dp": 2},
        {"tp": 2, "dp": 2},
        {"tp": 2, "dp": 1, "sequence_parallel": False},
        {"pp": 2, "dp": 1, "schedule": "zb-h1", "tp": 2},
        {"pp": 2, "dp": 1, "recompute": "selective", "recompute_modules": ("mla_up", "core", "norm"), "tp": 2},
        {"dp": 2, "fsdp": True, "recompute": "full"},
    ],
)
def test_a_step_ends_and_leaves_nothing(model: Model, plan: dict[str, Any], run_untimed: Callable[..., Any]) -> None:
    job = training_step(model, ParallelPlan(**plan), global_batch=8, micro_batch=1, seq_len=64)
    run = run_untimed(job)
    assert run.complete
    assert run.lowest >= 0
    assert not any(run.left.values())
