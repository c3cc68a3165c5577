"""Subgroups: whole tensors of neighbouring blocks, shares that add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.workload.layers.placed import Placed, blocks
from clustersim.workload.model import Model
from clustersim.workload.offload.subgroup import Subgroup, subgroups
from clustersim.workload.shard import Shard
from clustersim.workload.sharding.replicas import Replicas
from clustersim.workload.sharding.sharding import Sharding
from clustersim.workload.stages import split

SIZES = st.sampled_from([1, 1000, 65_536, 100_000, 300_000, 10**9])


def cut(model: Model, size: int, shards: int = 1) -> tuple[Subgroup, ...]:
    """Of the whole model on one stage."""
    kinds = [Replicas(axis="dp", ranks=shards, sharding=Sharding(name="shards", optimizer=shards))]
    return subgroups([placed_of(model)], kinds, size=size)[0]


def placed_of(model: Model) -> tuple[Placed, ...]:
    shard = Shard(model=model, micro_batch=1, seq_len=64, dtype="bf16")
    return blocks(shard, split(model.num_layers, 1)[0], tied_here=False)


@given(SIZES, st.integers(1, 7))
def test_shares_are_those_of_the_rank(llama: Model, size: int, shards: int) -> None:
    found = cut(llama, size, shards)
    assert sum(s.parameters for s in found) == -(-llama.num_parameters // shards)
    assert [s.index for s in found] == list(range(len(found)))
    assert {s.count for s in found} == {len(found)}
    visited = [block for s in found for block in s.blocks]
    assert visited == sorted(visited)


def test_all_but_the_last_are_full(llama: Model) -> None:
    found = cut(llama, 100_000)
    assert all(s.parameters >= 100_000 for s in found[:-1])


def test_no_tensor_is_divided(llama: Model) -> None:
    """The embedding is larger than asked for and stays whole; a matrix of 256 x 256 is one subgroup each."""
    table, square = 1000 * 256, 256 * 256
    found = cut(llama, square)
    assert found[0].parameters == table
    assert found[1].parameters == 256 + square  # the norm before it, then the queries' matrix


def test_a_huge_size_is_one_subgroup(llama: Model) -> None:
    assert len(cut(llama, 10**12)) == 1


@pytest.mark.parametrize("size", [50_000, 10**6])
def test_chunks_are_cut_by_themselves(llama: Model, size: int) -> None:
    kinds = [Replicas(axis="dp", ranks=1, sharding=Sharding(name="none"))]
    whole = placed_of(llama)
    halves = subgroups([whole[:9], whole[9:]], kinds, size=size)
    assert [s.index for half in halves for s in half] == list(range(sum(map(len, halves))))
    assert [{s.chunk for s in half} for half in halves] == [{0}, {1}]
    assert sum(s.parameters for half in halves for s in half) == llama.num_parameters


def test_matrices_of_one_input_can_be_one_tensor(llama: Model) -> None:
    """Queries, keys and values, and gate and up: three tensors of a layer less, and the same weights."""
    kinds = [Replicas(axis="dp", ranks=1, sharding=Sharding(name="none"))]
    apart, fused = (subgroups([placed_of(llama)], kinds, size=1, fused=fused)[0] for fused in (False, True))
    assert len(apart) - len(fused) == 3 * llama.num_layers
    assert sum(s.parameters for s in apart) == sum(s.parameters for s in fused) == llama.num_parameters
