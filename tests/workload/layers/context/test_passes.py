"""Attention cores of all ranks that share a sequence: together they do the work of one, and send what theory says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.workload.context import Context, Method, places
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.piece import Piece
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.shard import Shard

NewShard = Callable[..., Shard]
CP = 4
METHODS = {
    "zigzag": Context(ranks=CP),
    "ring": Context(ranks=CP, method="ring"),
    "all_gather": Context(ranks=CP, method="all_gather"),
    "gathered_ring": Context(ranks=CP, method="gathered_ring"),
    "ulysses": Context(ranks=CP, method="ulysses", ulysses=CP),
    "hybrid": Context(ranks=CP, method="hybrid", ulysses=2),
}
DOCUMENTS = ((128,), (40, 40, 48))
KEYS_AND_VALUES = 2 * 2 * 128 // CP * 2 * 4 * 32  # 2 bytes, 2 sequences of 128 tokens over cp, 4 heads of 32 for each
QUERIES = 2 * 2 * 128 // CP * 8 * 32


def kernels(pieces: tuple[Piece, ...]) -> int:
    """FLOP of the attention kernels."""
    ops = [p.op for p in pieces if isinstance(p.op, Compute)]
    return sum(k.flops for op in ops for k in op.kernels if k.kind == "attention")


def sent(pieces: tuple[Piece, ...], *kinds: str) -> list[int]:
    """Payloads of collectives of these kinds [B]."""
    ops = [p.op for p in pieces if isinstance(p.op, Collective)]
    return [op.nbytes for op in ops if op.kind in kinds]


def every_rank(shard: Shard) -> list[Shard]:
    """Where ranks differ, each of them; else one rank as often as there are ranks."""
    found = places(shard.context, shard.masks)
    return [replace(shard, context=found[n % len(found)]) for n in range(shard.context.ranks)]


@pytest.mark.parametrize("documents", [None, DOCUMENTS])
@pytest.mark.parametrize("method", METHODS)
def test_ranks_together_do_the_work_of_one(
    llama: Model, new_shard: NewShard, method: str, documents: tuple[tuple[int, ...], ...] | None
) -> None:
    one = attention(new_shard(llama, documents=documents))
    ranks = [attention(s) for s in every_rank(new_shard(llama, documents=documents, context=METHODS[method]))]
    rounding = 8 * 64 * CP**2 if documents and method in ("zigzag", "gathered_ring", "hybrid") else 0
    for way, products in (("forward", 2), ("backward", 5)):
        whole = kernels(getattr(one, way))
        total = sum(kernels(getattr(block, way)) for block in ranks)
        assert whole <= total <= whole + rounding * products // 2 * CP


def test_parts_from_front_and_back_are_balanced(llama: Model, new_shard: NewShard) -> None:
    for method in ("zigzag", "all_gather", "gathered_ring", "ulysses", "hybrid"):
        shard = new_shard(llama, context=METHODS[method])
        assert len(places(shard.context, shard.masks)) == 1
    context = METHODS["all_gather"]
    (mask, _) = new_shard(llama).masks
    assert {mask.pairs2(context.spans(128, n)) for n in range(CP)} == {128**2 // CP}


def test_contiguous_parts_are_not(llama: Model, new_shard: NewShard) -> None:
    """Rank i of n does (2·i + 1)/n² of the work, so the last does (2·n - 1)/n times the mean."""
    work = [kernels(attention(s).forward) for s in every_rank(new_shard(llama, context=METHODS["ring"]))]
    assert [w * CP**2 for w in work] == [(2 * i + 1) * sum(work) for i in range(CP)]
    assert max(work) * CP**2 == (2 * CP - 1) * sum(work)


@pytest.mark.parametrize("method", ["zigzag", "ring"])
def test_a_ring_passes_each_block_on_but_once(llama: Model, new_shard: NewShard, method: str) -> None:
    block = attention(new_shard(llama, context=METHODS[method]))
    assert sent(block.forward, "send") == sent(block.forward, "recv") == [KEYS_AND_VALUES] * (CP - 1)
    assert sum(sent(block.backward, "send")) == sum(sent(block.backward, "recv")) == 2 * (CP - 1) * KEYS_AND_VALUES


def test_gathered_keys_are_met_block_by_block(llama: Model, new_shard: NewShard) -> None:
    """A kernel a block each way; gradients in fp32 go round once, and each partial output is merged in fp32."""
    block = attention(new_shard(llama, context=METHODS["gathered_ring"]))
    for pieces in (block.forward, block.backward):
        ops = [p.op for p in pieces if isinstance(p.op, Compute)]
        assert sum(k.kind == "attention" for op in ops for k in op.kernels) == CP
        assert sent(pieces, "all_gather") == [CP * KEYS_AND_VALUES]
    assert sent(block.forward, "all_to_all") == []
    assert sent(block.backward, "all_to_all") == [2 * KEYS_AND_VALUES] * CP  # 4 bytes an element instead of 2
    merged = [
        op for op in (p.op for p in block.forward) if isinstance(op, Compute) and op.name.endswith("core forward")
    ]
    passes = [k.nbytes for op in merged for k in op.kernels if k.kind == "memory" and k.dtype == "fp32"]
    rows, columns = 2 * 128 // CP, 8 * 32
    assert passes == [3 * rows // 4 * (10 * columns + 12 * 8)] * (CP - 1) + [6 * rows * columns]


def test_the_own_block_does_not_wait_for_the_others(llama: Model, new_shard: NewShard) -> None:
    pieces = attention(new_shard(llama, context=METHODS["gathered_ring"])).forward
    gathering = next(n for n, p in enumerate(pieces) if isinstance(p.op, Collective))
    waits = [gathering in (p.after or ()) for p in pieces if isinstance(p.op, Compute) and "core forward" in p.op.name]
    assert waits == [False, True]


def test_all_gathers_carry_keys_and_values_of_all(llama: Model, new_shard: NewShard) -> None:
    block = attention(new_shard(llama, context=METHODS["all_gather"]))
    assert sent(block.forward, "all_gather") == [CP * KEYS_AND_VALUES // 2] * 2
    assert (
        sent(block.backward, "all_gather") == sent(block.backward, "reduce_scatter") == [CP * KEYS_AND_VALUES // 2] * 2
    )


def test_four_all_to_alls_each_way(llama: Model, new_shard: NewShard) -> None:
    block = attention(new_shard(llama, context=METHODS["ulysses"]))
    inputs = [QUERIES, KEYS_AND_VALUES // 2, KEYS_AND_VALUES // 2]
    assert sent(block.forward, "all_to_all") == [*inputs, QUERIES]
    assert sent(block.backward, "all_to_all") == [QUERIES, *inputs]
    assert sent(block.forward, "send", "all_gather") == []


def test_a_hybrid_passes_on_the_heads_it_has(llama: Model, new_shard: NewShard) -> None:
    """Twice the tokens with half of the heads, over half as many ranks."""
    block = attention(new_shard(llama, context=METHODS["hybrid"]))
    assert sent(block.forward, "send") == [KEYS_AND_VALUES] * (CP // 2 - 1)
    assert len(sent(block.forward, "all_to_all")) == 4
    assert sent(block.backward, "all_to_all")[:2] == [QUERIES, QUERIES]  # the output once more, and its gradient


@pytest.mark.parametrize("method", METHODS)
def test_what_a_layer_keeps_is_split(llama: Model, new_shard: NewShard, method: str) -> None:
    whole, part = attention(new_shard(llama)), attention(new_shard(llama, context=METHODS[method]))
    before_exchange = QUERIES if method == "ulysses" else 0
    assert part.kept - before_exchange == whole.kept // CP


@pytest.mark.parametrize("method", ["zigzag", "ring"])
def test_messages_run_beside_kernels(llama: Model, new_shard: NewShard, method: Method) -> None:
    """A kernel waits for the block that it reads, not for the one that is on its way."""
    pieces = attention(new_shard(llama, context=Context(ranks=CP, method=method, index=CP - 1))).forward
    attends = [n for n, p in enumerate(pieces) if p.op.name == "attention core forward"]
    assert pieces[attends[-1] + 1].op.name == "attention core merge forward"
    receives = [n for n, p in enumerate(pieces) if p.op.name.startswith("receive")]
    assert len(attends) == len(receives) + 1 == CP
    for step, n in enumerate(attends[1:], start=1):
        after = pieces[n].after
        assert after is not None
        assert receives[step - 1] in after
        assert step == CP - 1 or receives[step] not in after
