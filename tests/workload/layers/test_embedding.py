"""The embedding against counts by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clustersim.workload.layers.block import Block
from clustersim.workload.layers.embedding import embedding
from clustersim.workload.layers.head import head
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
Computed = Callable[[Block], tuple[Compute, Compute | None, Compute | None]]
Flops = Callable[[Block], tuple[int, int]]
TOKENS = 2 * 128


def test_embedding(gpt: Model, new_shard: NewShard, flops: Flops, computed: Computed) -> None:
    block = embedding(new_shard(gpt, tp=2))
    assert block.parameters == 1024 // 2 * 256 + 128 * 256
    assert flops(block) == (0, 0)
    # Rows read and written, then read and written with the positions added.
    assert computed(block)[0].nbytes == 4 * 2 * TOKENS * 256


def test_an_embedding_narrower_than_the_model(gpt: Model, new_shard: NewShard, flops: Flops) -> None:
    shard = new_shard(replace(gpt, embedding_dim=64))
    projection = 64 * 256
    assert embedding(shard).parameters == 1024 * 64 + 128 * 256 + projection
    assert flops(embedding(shard)) == (2 * TOKENS * projection, 4 * TOKENS * projection)
    assert head(shard, tied_here=False).parameters == 1024 * 64 + projection
    assert flops(head(shard, tied_here=False))[0] == 2 * TOKENS * (1024 * 64 + projection)


def test_backward_adds_this_rank_s_rows_to_a_gradient_of_zeros(
    gpt: Model, new_shard: NewShard, computed: Computed
) -> None:
    shard, table = new_shard(gpt, tp=2), 1024 // 2 * 256
    _, backward, _ = computed(embedding(shard))
    assert backward is not None
    assert backward.nbytes == 2 * table + 2 * TOKENS * 256 + 2 * 2 * (TOKENS // 2) * 256
    _, summed, _ = computed(embedding(replace(shard, fusion=())))
    assert summed is not None
    # what is added, and 4 bytes of the sum read and written
    assert summed.nbytes == backward.nbytes + (2 + 2 * 4) * table


def test_its_gradient_is_as_large_as_the_table_for_a_while(gpt: Model, new_shard: NewShard) -> None:
    assert embedding(new_shard(gpt, tp=2)).backward_workspace == 2 * 1024 // 2 * 256
