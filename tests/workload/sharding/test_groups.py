"""Parameter groups: a layer each, or a bucket of them; and what is held while they are on their way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import clustersim as cs
from clustersim.workload.layers.placed import Placed, blocks
from clustersim.workload.shard import Shard
from clustersim.workload.sharding import ddp, zero
from clustersim.workload.sharding.groups import parameter_groups
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.sharding.sharding import Sharding
from clustersim.workload.stages import split

LAYER = 12 * 512**2 + 2 * 512
TABLE = 4096 * 512


@pytest.fixture
def shard(model: cs.Model) -> Shard:
    return Shard(model=model, micro_batch=1, seq_len=256, gradient_dtype="bf16")


@pytest.fixture
def placed(shard: Shard) -> tuple[Placed, ...]:
    (whole,) = split(6, 1)
    return blocks(shard, whole, tied_here=False)


@pytest.fixture
def sizes(shard: Shard, placed: tuple[Placed, ...]) -> Callable[[Sharding], list[int]]:
    """Parameters of the groups that a strategy of eight ranks makes."""

    def of(sharding: Sharding) -> list[int]:
        kinds = [Replicas(axis="dp", ranks=8, sharding=sharding)]
        groups = parameter_groups(placed, shard, kinds, last=False)
        return [sum(placed[i].block.parameters for i in group.blocks) for group in groups if group.travels]

    return of


def test_a_layer_each(sizes: Callable[..., list[int]]) -> None:
    assert sizes(zero(8, stage=3, weight=2, gradient=2)) == [TABLE, *[LAYER] * 6, TABLE + 512]
    assert sizes(zero(8, stage=2, weight=2, gradient=2)) == [TABLE, *[LAYER] * 6, TABLE + 512]


def test_a_block_each(sizes: Callable[..., list[int]]) -> None:
    """Attention and MLP, each with the norm before it."""
    attention, mlp = 4 * 512**2 + 512, 8 * 512**2 + 512
    assert sizes(zero(8, stage=3, weight=2, gradient=2, by_block=True)) == [
        TABLE,
        *[attention, mlp] * 6,
        TABLE + 512,
    ]


@pytest.mark.parametrize(
    ("bucket", "expected"),
    [
        (LAYER, [TABLE, *[LAYER] * 6, TABLE + 512]),
        (2 * LAYER, [TABLE + LAYER, 2 * LAYER, 2 * LAYER, TABLE + 512 + LAYER]),
        (10**9, [2 * TABLE + 6 * LAYER + 512]),
    ],
)
def test_buckets_fill_from_the_end(bucket: int, expected: list[int], sizes: Callable[..., list[int]]) -> None:
    assert sizes(zero(8, stage=2, weight=2, gradient=2, bucket=bucket)) == expected
    assert sizes(ddp(8, gradient=2, each=True, bucket=bucket)) == expected


def test_nothing_travels_where_gradients_wait(sizes: Callable[..., list[int]]) -> None:
    assert sizes(ddp(8, gradient=2)) == []
    assert sizes(zero(8, stage=2, weight=2, gradient=2, each=False)) == []


def test_only_split_gradients_need_room(shard: Shard, placed: tuple[Placed, ...]) -> None:
    """An all-reduce works in the gradients that are held anyway."""

    def room(sharding: Sharding) -> list[int]:
        kinds = [Replicas(axis="dp", ranks=8, sharding=sharding)]
        return [group.gradient_nbytes for group in parameter_groups(placed, shard, kinds, last=False)]

    assert room(ddp(8, gradient=2, each=True, bucket=10**9)) == [0]
    assert room(zero(8, stage=2, weight=2, gradient=2, bucket=10**9)) == [2 * (2 * TABLE + 6 * LAYER + 512)]


def test_per_parameter_copies_out_and_in(new_step: Callable[..., cs.Job], model: cs.Model) -> None:
    """Weights are read and written once more each time they have come; gradients are read, cast and written."""
    split = new_step(fsdp=True, per_parameter=True, reduce_dtype="fp32", micro_batches=3)
    flat = new_step(fsdp=True, reduce_dtype="fp32", micro_batches=3)
    passes = {"copy out weights": 2 * 3 * 2 * 2, "copy in gradients": 3 * (2 + 4)}

    def traffic(job: cs.Job, name: str) -> int:
        arrays = job.programs[0].arrays()
        ops = [arrays.ops[number] for number in arrays.op.tolist()]
        return sum(op.nbytes for op in ops if op.name == name)

    assert {name: traffic(split, name) for name in passes} == {
        name: nbytes * model.num_parameters for name, nbytes in passes.items()
    }
    assert all(traffic(flat, name) == 0 for name in passes)
    assert traffic(flat, "pack gradients") == 3 * (2 + 4) * model.num_parameters
    assert traffic(split, "pack gradients") == 0


def test_a_copy_waits_for_its_gather_and_its_block_for_it(new_step: Callable[..., cs.Job]) -> None:
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), new_step(fsdp=True, per_parameter=True, micro_batches=1))
    trace = run.trace_of([0])
    forward = trace[trace["phase"] == "forward"]
    gathers = forward[forward["name"] == "all-gather weights"]["end_ns"].to_numpy()
    copies = forward[forward["name"] == "copy out weights"]["start_ns"].to_numpy()
    assert len(gathers) == len(copies) == 8
    assert (copies >= gathers).all()
