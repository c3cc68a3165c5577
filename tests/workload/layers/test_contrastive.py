"""Two towers and the loss that compares them over all replicas."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.patches import Patches
from clustersim.workload.shape.tower import Tower
from clustersim.workload.training_step import training_step

PAIRS, PROJECTION = 4, 64


@pytest.fixture
def model(gpt: Model) -> Model:
    patches = Patches(image_size=64, patch_size=16, bias=False)
    tower = Tower(
        num_layers=4, hidden=512, num_heads=8, head_dim=64, ffn_hidden=1024, projection=PROJECTION, patches=patches
    )
    return replace(gpt, head=False, tied_embeddings=False, tower=tower)


def step(model: Model, *, dp: int, **plan: Any) -> Any:
    whole = ParallelPlan(dp=dp, **plan)
    return training_step(model, whole, global_batch=2 * PAIRS * dp, micro_batch=PAIRS, seq_len=64)


def comparisons(job: Any) -> list[int]:
    """FLOP of the loss, forward and backward."""
    return [op.flops for op in job.programs[0].arrays().ops if isinstance(op, Compute) and op.kind == "contrastive"]


@pytest.mark.parametrize("dp", [1, 2, 8])
def test_a_rank_compares_its_pairs_with_those_of_all_replicas(model: Model, dp: int) -> None:
    forward = 2 * 2 * PAIRS * (PAIRS * dp) * PROJECTION
    assert comparisons(step(model, dp=dp)) == [forward, 2 * forward]


def test_features_of_both_towers_are_gathered_and_their_gradients_reduced(
    model: Model, sent: Callable[..., int]
) -> None:
    program = step(model, dp=8).programs[0]
    micro_batches, features = 2, 2 * 2 * (8 * PAIRS) * PROJECTION
    assert sent(program, kind="all_gather", name="features") == micro_batches * features
    assert sent(program, kind="reduce_scatter", name="feature gradients") == micro_batches * features
    assert not sent(step(model, dp=1).programs[0], name="feature")


def test_towers_of_unequal_width_leave_nothing(model: Model, run_untimed: Callable[..., Any]) -> None:
    for plan in ({}, {"recompute": "full"}, {"zero": 3}, {"recompute": "full", "recompute_layers": 2}):
        run = run_untimed(step(model, dp=2, **plan))
        assert run.complete
        assert run.lowest >= 0
        assert not any(run.left.values())


def test_both_towers_are_held(model: Model) -> None:
    assert step(model, dp=1).programs[0].resident["gpu/weights"] == 2 * model.num_parameters


@pytest.mark.parametrize("degree", ["tp", "pp"])
def test_towers_stand_on_one_rank(model: Model, degree: str) -> None:
    with pytest.raises(BadInput, match=rf"plan\.{degree}: 2 must be 1: no step is written for two towers"):
        step(model, dp=1, **{degree: 2})
