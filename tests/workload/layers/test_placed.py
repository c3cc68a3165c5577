"""A chunk's blocks together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.workload.activations import kept_by_layer
from clustersim.workload.layers.placed import blocks
from clustersim.workload.model import Model
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk, split

NewShard = Callable[..., Shard]


def kinds(shard: Shard, chunk: Chunk) -> list[str]:
    return [p.block.kind for p in blocks(shard, chunk, tied_here=False)]


def test_what_stands_where(gpt: Model, new_shard: NewShard) -> None:
    shard = new_shard(gpt)
    first, *_, last = split(gpt.num_layers, 8)
    layer = ["norm", "attention", "norm", "mlp", "residual"]
    assert kinds(shard, first) == ["embedding", *layer]
    assert kinds(shard, last) == [*layer, "final norm", "head", "loss"]
    assert kinds(new_shard(replace(gpt, embedding_norm=True)), first)[:2] == ["embedding", "embedding norm"]
    assert kinds(new_shard(replace(gpt, final_norm=False)), last) == [*layer, "head", "loss"]


def test_layers_have_their_numbers(gpt: Model, new_shard: NewShard) -> None:
    placed = blocks(new_shard(gpt), split(gpt.num_layers, 4)[1], tied_here=False)
    assert [p.layer for p in placed] == [2] * 5 + [3] * 5


def test_blocks_keep_what_the_layer_keeps(gpt: Model, new_shard: NewShard) -> None:
    chunk = Chunk(first_layer=0, num_layers=1)
    for shard in (new_shard(gpt, tp=2, sequence_parallel=True), new_shard(gpt, attention="unfused", dropout=True)):
        kept = sum(p.block.kept for p in blocks(shard, chunk, tied_here=False))
        assert kept + shard.residual_nbytes == kept_by_layer(shard, Recomputation.of("none"))


@pytest.mark.parametrize("tp", [1, 2])
def test_backward_is_one_op_unless_something_can_run_beside_it(gpt: Model, new_shard: NewShard, tp: int) -> None:
    placed = blocks(new_shard(gpt, tp=tp), Chunk(first_layer=0, num_layers=8), tied_here=False)
    apart = [p.block.whole_backward(apart=p.block.gathers and tp > 1) for p in placed]
    assert any(beside for _, beside in apart) == (tp > 1)
    assert all(len(pieces) == 1 for pieces, _ in apart if pieces)


@pytest.mark.parametrize("name", ["gpt", "llama"])
@pytest.mark.parametrize("stages", [1, 4])
def test_parameters_are_the_model_s(
    name: str, stages: int, request: pytest.FixtureRequest, new_shard: NewShard
) -> None:
    model: Model = request.getfixturevalue(name)
    variants = (
        model,
        replace(model, qk_norm=True, embedding_norm=True),
        replace(model, qkv_bias=True, mlp_bias=True, attention_output_bias=True),
        replace(model, embedding_dim=64),
    )
    for changed in variants:
        tied_here = changed.tied_embeddings and stages == 1
        chunks = split(changed.num_layers, stages)
        placed = [p for c in chunks for p in blocks(new_shard(changed), c, tied_here=tied_here)]
        copies = changed.parameters_by_part["embedding"] if changed.tied_embeddings and not tied_here else 0
        assert sum(p.block.parameters for p in placed) == changed.num_parameters + copies
