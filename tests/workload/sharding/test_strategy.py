"""From words to strategies, what does not go together, and what has no effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import RECIPES
from clustersim.workload.sharding import Movement, Sharding, zero
from clustersim.workload.sharding.coherent import incoherent
from clustersim.workload.sharding.strategy import REDUCE_BUCKET, strategy


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        ({}, "ddp"),
        ({"zero": 1}, "zero-1"),
        ({"zero": 2}, "zero-2"),
        ({"fsdp": True}, "zero-3"),
        ({"fsdp": True, "hsdp": 8}, "hsdp"),
        ({"zero": 3, "zeropp": ("hpz",)}, "zero++"),
        ({"sync_every": 10}, "diloco over none"),
        ({"sync_every": 10, "sync_ranks": 8, "zero": 2, "sync_momentum": False}, "local sgd over zero-2"),
    ],
)
def test_words(plan: dict[str, Any], name: str) -> None:
    sharding = strategy(ParallelPlan(**plan), RECIPES["bf16"])(16)
    assert sharding.name == name
    assert list(incoherent(sharding, ranks=16)) == []


def test_deepspeeds_bucket_and_an_own_one() -> None:
    assert strategy(ParallelPlan(zero=2), RECIPES["bf16"])(8).bucket == REDUCE_BUCKET == 5 * 10**8
    assert strategy(ParallelPlan(zero=2, bucket_bytes=4000), RECIPES["bf16"])(8).bucket == 1000


@pytest.mark.parametrize(
    ("plan", "key", "nearest"),
    [
        ({"fsdp": True, "hsdp": 3}, "plan.hsdp", 2),
        ({"zero": 3, "zeropp": ("hpz",), "zeropp_ranks": 1}, "plan.zeropp_ranks", 2),
        ({"zero": 3, "zeropp": ("hpz",), "hsdp": 8}, "plan.hsdp", None),
        ({"zero": 2, "zeropp": ("hpz",)}, "plan.zeropp", None),
        ({"zero": 3, "zeropp": ("zzz",)}, "plan.zeropp", "qwz"),
        ({"zero": 3, "zeropp": ("hpz",), "reshard": False}, "plan.reshard", True),
        ({"zero": 3, "zeropp": ("hpz",), "reduce_each": False}, "plan.reduce_each", True),
        ({"fsdp": True, "reshard": False, "pp": 2}, "plan.reshard", True),
        ({"sync_every": 0}, "plan.sync_every", 1),
        ({"sync_every": 2, "sync_ranks": 5}, "plan.sync_ranks", 4),
        ({"sync_every": 2, "fsdp": True, "hsdp": 4}, "plan.sync_every", None),
        ({"reduce_dtype": "fp8"}, "plan.reduce_dtype", None),
        ({"limit_gathers": "no"}, "plan.limit_gathers", True),
        ({"sharding": lambda ranks: Sharding(name="alone")}, "plan.sharding", None),
        ({"schedule": "dualpipe", "pp": 2, "fsdp": True, "hsdp": 4}, "plan.schedule", "1f1b"),
    ],
)
def test_one_fault(plan: dict[str, Any], key: str, nearest: object, new_step: Callable[..., cs.Job]) -> None:
    with pytest.raises(cs.BadInput) as caught:
        new_step(**plan, micro_batches=4)
    (fault,) = caught.value.faults
    assert fault.key == key
    assert nearest is None or fault.nearest == nearest


@pytest.mark.parametrize(
    ("plan", "note", "without"),
    [
        ({"hsdp": 8}, "plan.hsdp: no effect without", {"hsdp": None}),
        ({"zero": 2, "limit_gathers": False}, "plan.limit_gathers: no effect without", {"limit_gathers": True}),
        ({"zero": 1, "reduce_each": False}, "plan.reduce_each: no effect", {"reduce_each": None}),
        ({"zero": 3, "zeropp": ("qgz", "qwz"), "zeropp_ranks": 16}, "plan.zeropp: qgz: no", {"zeropp": ("qwz",)}),
        (
            {"zero": 3, "zeropp": ("qgz",), "reduce_dtype": "fp32"},
            "plan.reduce_dtype: no effect",
            {"reduce_dtype": None},
        ),
        ({"zero": 1, "per_parameter": True}, "plan.per_parameter: no effect", {"per_parameter": False}),
        (
            {"zero": 3, "zeropp": ("qwz",), "per_parameter": True},
            "plan.per_parameter: no effect",
            {"per_parameter": False},
        ),
        ({"zeropp_ranks": 4}, "plan.zeropp_ranks: no effect", {"zeropp_ranks": 8}),
        ({"sync_dtype": "bf16"}, "plan.sync_dtype: no effect without plan.sync_every", {"sync_dtype": "fp32"}),
        ({"sync_every": 4, "sync_ranks": 16}, "plan.sync_every: no effect", {"sync_every": None}),
        ({"fsdp": True, "bucket_bytes": 100}, "plan.bucket_bytes: no effect", {"bucket_bytes": None}),
        ({"fsdp": True, "overlap_dp": False}, "plan.overlap_dp: no effect", {"overlap_dp": True}),
        (
            {"sharding": lambda n: zero(n, stage=1, weight=2, gradient=2), "zero": 3},
            "plan.zero: no effect",
            {"zero": 0},
        ),
    ],
)
def test_no_effect_is_said_and_true(
    plan: dict[str, Any], note: str, without: dict[str, Any], new_step: Callable[..., cs.Job]
) -> None:
    job, plain = new_step(**plan), new_step(**(plan | without))
    assert [text for text in job.notes if text.startswith(note)]
    assert not [text for text in plain.notes if text.startswith(note)]
    assert [p.arrays().digest for p in job.programs] == [p.arrays().digest for p in plain.programs]


def test_reduce_each_of_one_micro_batch_is_not_called_without_effect(new_step: Callable[..., cs.Job]) -> None:
    whole = new_step(zero=1, reduce_each=True, micro_batches=1)
    assert [note for note in whole.notes if "reduce_each" in note] == [
        "plan.reduce_each: with one micro-batch it decides on the buckets alone"
    ]
    held, split = (new_step(zero=2, reduce_each=each, micro_batches=1) for each in (False, None))
    assert not [note for note in held.notes if "reduce_each" in note]
    assert held.programs[0].arrays().resident != split.programs[0].arrays().resident  # whole gradients


SPLIT = zero(8, stage=3, weight=2, gradient=2)
INSIDE = Movement(kind="all_gather", what="weights", nbytes=2, over="inner")


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"weights": 3}, "weights: 3 must divide"),
        ({"inner": 5}, "inner: 5 must divide"),
        ({"gather": (INSIDE,)}, "inner: 1 must be between"),
        ({"gather": ()}, "gather: must"),
        ({"gather_again": ()}, "gather_again: must"),
        ({"reduce": ()}, "reduce: must"),
        ({"weights": 4, "gradients": 4, "gather": SPLIT.gather}, "refresh: must"),
        ({"each_micro_batch": False}, "each_micro_batch: must"),
        ({"prefetch": -1}, "prefetch"),
        ({"sync_every": 4}, "exchange: must"),
        ({"optimizer": 4}, "optimizer: 4 must be a multiple"),
    ],
)
def test_incoherent(change: dict[str, Any], rule: str) -> None:
    assert list(incoherent(SPLIT, ranks=8)) == []
    found = list(incoherent(replace(SPLIT, **change), ranks=8))
    assert len(found) == 1
    assert found[0].startswith(rule)


def test_an_inner_group_keeps_the_ranks_of_a_sequence_together() -> None:
    found = list(incoherent(replace(SPLIT, inner=2), ranks=8, cp=4))
    assert found == ["inner: 2 must be a multiple of cp 4"]


def test_an_own_strategy_is_held_against_the_ranks_of_experts_too() -> None:
    def by_eight(ranks: int) -> Sharding:
        inside = replace(INSIDE, over="inner")
        moves: dict[str, Any] = {"gather": (inside,), "gather_again": (inside,), "reduce": SPLIT.reduce}
        return Sharding(name="by eight", weights=8, optimizer=8, inner=8, **moves)

    plan = cs.ParallelPlan(dp=16, ep=8, sharding=by_eight)
    with pytest.raises(cs.BadInput, match=r"by_eight over 2 ranks.*weights: 8 must divide the 2 ranks"):
        cs.training_step(cs.load_model("mixtral-8x7b"), plan, global_batch=16, micro_batch=1, seq_len=1024)
