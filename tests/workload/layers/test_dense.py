"""What stands before and behind the stack of an encoder: patches, transforms, poolers, classes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.dense import classes, head_transform, patches, pooler
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.patches import Patches
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

HIDDEN, SEQUENCES, TOKENS = 256, 2, 2 * 128


@pytest.fixture
def bert(gpt: Model) -> Model:
    return replace(
        gpt,
        causal=False,
        embedding_norm=True,
        final_norm=False,
        token_types=2,
        head_bias=True,
        head_transform=True,
        pooler=True,
        num_classes=2,
    )


@pytest.fixture
def vit(gpt: Model) -> Model:
    images = Patches(image_size=64, patch_size=16)
    found = replace(gpt, causal=False, head=False, tied_embeddings=False, num_classes=10)
    return replace(found, vocab=0, max_seq_len=17, patches=images)


def test_a_transform_reads_every_token_and_a_pooler_one_of_each_sequence(
    bert: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    product = 2 * HIDDEN * HIDDEN
    assert flops(head_transform(new_shard(bert))) == (TOKENS * product, 2 * TOKENS * product)
    assert flops(pooler(new_shard(bert))) == (SEQUENCES * product, 2 * SEQUENCES * product)
    assert flops(classes(new_shard(bert)))[0] == SEQUENCES * 2 * HIDDEN * 2
    half = flops(head_transform(new_shard(bert, tp=2, sequence_parallel=True)))
    assert half == (TOKENS * product // 2, TOKENS * product)


def test_images_need_no_gradient(
    vit: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    product = SEQUENCES * 16 * 2 * (3 * 16 * 16) * HIDDEN
    assert flops(patches(new_shard(vit, seq_len=17))) == (product, product)


@pytest.mark.parametrize(
    "plan", [{}, {"tp": 2, "sequence_parallel": False}, {"pp": 2}, {"dp": 2, "zero": 3, "recompute": "full"}]
)
def test_a_step_ends_and_leaves_nothing(
    bert: Model, vit: Model, plan: dict[str, Any], run_untimed: Callable[..., Any]
) -> None:
    for model, seq_len in ((bert, 64), (vit, 17)):
        whole = ParallelPlan(**{"dp": 1, **plan})
        run = run_untimed(training_step(model, whole, global_batch=8, micro_batch=2, seq_len=seq_len))
        assert run.complete
        assert run.lowest >= 0
        assert not any(run.left.values())


def test_an_image_has_the_tokens_of_its_patches(vit: Model) -> None:
    with pytest.raises(BadInput, match=r"seq_len: 16 must be the 17 tokens of an image; nearest: 17"):
        training_step(vit, ParallelPlan(dp=1), global_batch=2, micro_batch=1, seq_len=16)
