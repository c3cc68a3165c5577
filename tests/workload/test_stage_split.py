"""Layers over stages by their work, or as the plan lists them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.faults import BadInput
from clustersim.workload.model import Model
from clustersim.workload.model_flops import layer_flops
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.mamba import Mamba
from clustersim.workload.stage_split import least_largest, stage_split
from clustersim.workload.stages import split
from clustersim.workload.training_step import training_step


def largest(costs: list[int], counts: list[int], behind: int) -> int:
    ends = [sum(counts[:n]) for n in range(len(counts) + 1)]
    parts = [sum(costs[a:b]) for a, b in pairwise(ends)]
    return max(*parts[:-1], parts[-1] + behind)


@given(
    costs=st.lists(st.integers(1, 50), min_size=1, max_size=8),
    parts=st.integers(2, 6),
    behind=st.integers(0, 120),
)
def test_no_other_cut_has_a_smaller_largest_part(costs: list[int], parts: int, behind: int) -> None:
    layers = len(costs)
    parts = min(parts, layers + 2)
    counts = least_largest(costs, parts, behind=behind)
    assert len(counts) == parts
    assert sum(counts) == layers
    assert all(counts[1:-1])
    others = []
    for cuts in combinations(range(-1, layers + 1), parts - 1):
        ends = [0, *(min(max(cut, 0), layers) for cut in cuts), layers]
        other = [b - a for a, b in pairwise(ends)]
        if all(other[1:-1]):
            others.append(largest(costs, other, behind))
    assert largest(costs, counts, behind) == min(others)


def test_equal_layers_are_split_evenly_but_for_the_head() -> None:
    assert least_largest([10] * 32, 4, behind=0) == [8, 8, 8, 8]
    assert least_largest([10] * 31, 4, behind=10) == [8, 8, 8, 7]


def test_unequal_layers(llama: Model) -> None:
    """Mixers that cost less than MLPs: stages have unequal numbers of layers and more equal work."""
    mixer = Mamba(version=2, inner=128, state=16, head_dim=32, groups=4)
    model = replace(llama, num_layers=12, layout="MMMMMM------", mamba=mixer, ffn_hidden=2048)
    plan = ParallelPlan(pp=3, split="flops")

    def work(chunks: Any) -> list[int]:
        layers = [range(c.first_layer, c.first_layer + c.num_layers) for c in chunks]
        return [sum(layer_flops(model, layer, 128).total for layer in stage) for stage in layers]

    by_flops, by_count = work(stage_split(plan, model, 3, 128)), work(split(12, 3))
    assert sum(by_flops) == sum(by_count)
    assert max(by_flops) < max(by_count)


def test_layers_as_listed(llama: Model) -> None:
    plan = ParallelPlan(dp=1, pp=4, stage_layers=(1, 3, 3, 1))
    job = training_step(llama, plan, global_batch=4, micro_batch=1, seq_len=64)
    found = [sorted({int(n) for n in program.arrays().layer if n >= 0}) for program in job.programs]
    assert found == [[0], [1, 2, 3], [4, 5, 6], [7]]


def test_a_last_stage_with_the_head_alone(llama: Model, run_untimed: Callable[..., Any]) -> None:
    plan = ParallelPlan(dp=1, pp=4, stage_layers=(3, 3, 2, 0))
    job = training_step(llama, plan, global_batch=4, micro_batch=1, seq_len=64)
    run = run_untimed(job)
    assert run.complete
    assert not any(run.left.values())


@pytest.mark.parametrize(
    ("layers", "fault"),
    [
        ((4, 4), "has 2 numbers, must have one for each of 4 virtual stages; nearest: [2, 2, 2, 2]"),
        ((2, 2, 2, 1), "adds up to 7, must add up to the 8 layers of llama-test; nearest: [2, 2, 2, 2]"),
        ((4, 0, 2, 2), "must be positive but for the first and the last stage"),
        ((4, -1, 3, 2), "must be a list of whole numbers from 0"),
    ],
)
def test_faults(llama: Model, layers: tuple[int, ...], fault: str) -> None:
    plan = ParallelPlan(dp=1, pp=4, stage_layers=layers)
    with pytest.raises(BadInput) as error:
        training_step(llama, plan, global_batch=4, micro_batch=1, seq_len=64)
    assert fault in str(error.value)


def test_what_has_no_effect_is_told(llama: Model) -> None:
    def notes(**plan: Any) -> str:
        job = training_step(llama, ParallelPlan(dp=1, **plan), global_batch=4, micro_batch=1, seq_len=64)
        return " ".join(job.notes)

    assert "plan.split: no effect with one stage" in notes(split="flops")
    assert "plan.split: no effect: plan.stage_layers" in notes(split="flops", pp=2, stage_layers=(4, 4))
    assert notes(split="flops", pp=2) == "layers split by their FLOP: 2 x 4"
