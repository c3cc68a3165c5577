"""A sequence in slices: the same gradients' work, one forward pass more, and the memory of one slice."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.linear_attention import LinearAttention
from clustersim.workload.training_step import training_step

FEATURES = 32


@pytest.fixture
def model(llama: Model) -> Model:
    return replace(llama, positions="none", linear=LinearAttention(features=FEATURES))


def step(model: Model, slices: int, *, micro_batch: int = 1, **plan: Any) -> Any:
    whole = ParallelPlan(**{"dp": 1, "sequence_slices": slices, **plan})
    return training_step(model, whole, global_batch=4, micro_batch=micro_batch, seq_len=128)


@pytest.mark.parametrize("plan", [{}, {"tp": 2}, {"tp": 2, "sequence_parallel": False}, {"dp": 2, "zero": 1}])
@pytest.mark.parametrize("slices", [1, 2, 8])
def test_a_step_ends_and_leaves_nothing(
    model: Model, slices: int, plan: dict[str, Any], run_untimed: Callable[..., Any]
) -> None:
    run = run_untimed(step(model, slices, **plan))
    assert run.complete
    assert run.lowest >= 0
    assert not any(run.left.values())


@pytest.mark.parametrize("slices", [2, 4, 16])
def test_every_slice_goes_forward_twice(model: Model, slices: int, flops_of: Callable[..., int]) -> None:
    whole, sliced = (step(model, n).programs[0] for n in (1, slices))
    again = flops_of(sliced, lambda op: op.recomputed)
    assert flops_of(sliced) - again == flops_of(whole)
    forward = step(model, 1, recompute="full").programs[0]
    head = 4 * 128 * 2 * model.hidden * model.vocab  # not computed again in layers that are
    assert again == flops_of(forward, lambda op: op.recomputed) + head


def test_memory_is_that_of_a_slice_and_of_two_states_a_layer(model: Model, run_untimed: Callable[..., Any]) -> None:
    """Where the whole sequence keeps c, n slices keep c/n beside states and their gradients."""
    states = 2 * 4 * model.num_heads * FEATURES * (model.head_dim + 1) * model.num_layers
    peaks = {n: run_untimed(step(model, n)).peak[0]["gpu/activations"] for n in (1, 2, 4, 8)}
    for n in (2, 4, 8):
        assert peaks[n] == peaks[1] / n + states


def test_gradients_are_complete_with_the_first_slice(model: Model) -> None:
    """Nothing is reduced before the last slice that the backward pass visits."""
    arrays = step(model, 4, dp=2).programs[0].arrays()
    names = [arrays.ops[k].name for k in arrays.op]
    reductions = [n for n, name in enumerate(names) if "gradients" in name]
    assert reductions
    last_micro_batch = [n for n, name in enumerate(names) if name == "embedding forward"]
    assert min(reductions) > last_micro_batch[-1]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"slices": 3}, "plan.sequence_slices: 3 must divide the 128 tokens of a sequence; nearest: 2"),
        ({"pp": 2}, "plan.pp: 2 no step is written for it in slices"),
        ({"dp": 2, "zero": 3}, "plan.zero: 3 no step is written for it in slices"),
        ({"recompute": "full"}, "plan.recompute: 'full' no step is written for it in slices"),
    ],
)
def test_what_does_not_go_with_slices_is_refused(model: Model, change: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadInput) as error:
        step(model, **{"slices": 2, **change})
    assert fault in str(error.value)


def test_only_states_can_be_passed_on(llama: Model) -> None:
    with pytest.raises(BadInput, match="llama-test is not made of causal linear attention and MLPs alone"):
        step(llama, 2)
