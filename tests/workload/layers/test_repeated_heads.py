"""Keys and values that are copied for each query head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from clustersim.hardware.kernel import Kernel
from clustersim.workload.activations import kept_tensors
from clustersim.workload.context import Context
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.piece import Piece
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.shard import Shard

New = Callable[..., Shard]


def kernels(pieces: tuple[Piece, ...], kind: str) -> list[Kernel]:
    return [k for p in pieces if isinstance(p.op, Compute) for k in p.op.kernels if k.kind == kind]


def test_the_copies_are_a_pass_each_way(llama: Model, new_shard: New) -> None:
    shard = new_shard(llama)
    repeats = replace(shard, repeats_heads=True)
    copied = 2 * 2 * shard.tokens * (4 + 8) * 32  # 2 bytes, keys and values: 4 heads are read, 8 written
    for way in ("forward", "backward"):
        without, with_it = (kernels(getattr(attention(s), way), "memory") for s in (shard, repeats))
        assert [k.nbytes for k in with_it if k not in without] == [copied]


def test_the_kernel_reads_and_the_layer_keeps_as_without_groups(llama: Model, new_shard: New) -> None:
    grouped = new_shard(llama, repeats_heads=True)
    alone = new_shard(replace(llama, num_kv_heads=8))
    assert kernels(attention(grouped).forward, "attention") == kernels(attention(alone).forward, "attention")
    total = [sum(t.nbytes for t in kept_tensors(shard)) for shard in (grouped, alone)]
    assert total[0] == total[1]
    assert attention(grouped).kept == attention(alone).kept
    assert attention(grouped).parameters < attention(alone).parameters


def test_ranks_that_share_a_sequence_exchange_the_copies(llama: Model, new_shard: New) -> None:
    def gathered(**given: object) -> int:
        context = Context(ranks=4, method="all_gather")
        ops = [p.op for p in attention(new_shard(llama, context=context, **given)).forward]
        return sum(op.nbytes for op in ops if isinstance(op, Collective))

    assert gathered(repeats_heads=True) == 2 * gathered()
