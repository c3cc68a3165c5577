from __future__ import annotations

from collections.abc import Callable

import pytest

from clustersim.workload.activations import kept_by_layer
from clustersim.workload.layers.placed import Placed, blocks
from clustersim.workload.model import Model
from clustersim.workload.passes.forward import forward
from clustersim.workload.passes.fragment import Fragment
from clustersim.workload.recompute import Recomputation, Recompute
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk

NewShard = Callable[..., Shard]
TWO_LAYERS = Chunk(first_layer=2, num_layers=2)


def layers(shard: Shard) -> tuple[Placed, ...]:
    return blocks(shard, TWO_LAYERS, tied_here=False)


def names(fragment: Fragment) -> list[str]:
    arrays = fragment.program.arrays()
    return [arrays.ops[k].name for k in arrays.op]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ["norm forward", "attention forward", "residual and norm forward", "mlp forward", "residual forward"]),
        (
            {"tp": 2},
            [
                "norm forward",
                "attention forward",
                "all-reduce attention output",
                "residual and norm forward",
                "mlp forward",
                "all-reduce mlp output",
                "residual forward",
            ],
        ),
        (
            {"tp": 2, "sequence_parallel": True},
            [
                "norm forward",
                "all-gather attention input",
                "attention forward",
                "reduce-scatter attention output",
                "residual and norm forward",
                "all-gather mlp input",
                "mlp forward",
                "reduce-scatter mlp output",
                "residual forward",
            ],
        ),
    ],
)
def test_ops_of_a_layer(gpt: Model, new_shard: NewShard, changes: dict[str, int], expected: list[str]) -> None:
    shard = new_shard(gpt, **changes)
    fragment = forward(layers(shard), shard, stage=1, recompute=Recomputation(), sends=True)
    assert names(fragment) == expected * 2
    assert fragment.program.arrays().layer.tolist() == [2] * len(expected) + [3] * len(expected)


def test_each_op_waits_for_the_one_before(gpt: Model, new_shard: NewShard) -> None:
    shard = new_shard(gpt, tp=2, sequence_parallel=True)
    fragment = forward(layers(shard), shard, stage=1, recompute=Recomputation(), sends=True)
    edges = {tuple(e) for e in fragment.program.arrays().edges.tolist()}
    arrays = fragment.program.arrays()
    for n in range(len(arrays) - 1):
        assert (n, n + 1) in edges
    assert fragment.entries == (0,)
    assert fragment.exits == (len(arrays) - 1,)


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_what_stays_is_what_the_layers_keep(gpt: Model, new_shard: NewShard, recompute: Recompute) -> None:
    shard = new_shard(gpt, attention="unfused", tp=2)
    fragment = forward(layers(shard), shard, stage=1, recompute=Recomputation.of(recompute), sends=True)
    left = dict.fromkeys(fragment.program.arrays().memory_keys, 0)
    for _, _, key, nbytes in fragment.program.arrays().memory.tolist():
        left[fragment.program.arrays().memory_keys[key]] += nbytes
    # The input of the first layer is held by its receive.
    assert left["gpu/activations"] + shard.residual_nbytes == 2 * kept_by_layer(shard, Recomputation.of(recompute))
    assert left["gpu/communication"] == shard.residual_nbytes
    assert left["gpu/workspace"] == 0


def test_gathered_inputs_are_workspace(gpt: Model, new_shard: NewShard) -> None:
    taken = []
    for sequence_parallel in (False, True):
        shard = new_shard(gpt, tp=2, sequence_parallel=sequence_parallel)
        arrays = forward(layers(shard), shard, stage=1, recompute=Recomputation(), sends=True).program.arrays()
        key = arrays.memory_keys.index("gpu/workspace")
        taken.append([n for _, end, k, n in arrays.memory.tolist() if k == key and not end])
    assert [b - a for a, b in zip(*taken, strict=True)] == [2 * 2 * 128 * 256] * 4
