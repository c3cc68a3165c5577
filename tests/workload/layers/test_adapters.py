"""Adapters: frozen weights have no gradients, no state and no sums; what is trained is small."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.library.model import load_model
from clustersim.workload.layers.adapters import adapted
from clustersim.workload.layers.attention import attention
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.mlp import mlp
from clustersim.workload.model import Model
from clustersim.workload.model_flops import training_flops
from clustersim.workload.op import Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.lora import LoRA
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

RANK, HIDDEN, TOKENS = 4, 256, 2 * 128


@pytest.fixture
def model(llama: Model) -> Model:
    return replace(llama, adapters=LoRA(rank=RANK, targets=("q", "v", "down")))


def step(model: Model, **plan: Any) -> Any:
    whole = ParallelPlan(**{"dp": 1, "attention": "unfused", **plan})
    return training_step(model, whole, global_batch=8, micro_batch=1, seq_len=64)


def test_frozen_matrices_have_one_product_backward_and_narrow_ones_two(
    model: Model, new_shard: Callable[..., Shard], flops: Callable[[Block], tuple[int, int]]
) -> None:
    plain, shard = new_shard(replace(model, adapters=None)), new_shard(model)
    for make, ends in ((attention, HIDDEN + 256 + HIDDEN + 128), (mlp, 688 + HIDDEN)):
        before, after = flops(make(plain)), flops(adapted(shard, make(shard)))
        narrow = 2 * TOKENS * RANK * ends
        weights = sum(p.op.flops for p in make(plain).backward if p.weight and isinstance(p.op, Compute))
        assert after == (before[0] + narrow, before[1] - weights + 2 * narrow)


def test_a_step_does_the_models_work(model: Model, flops_of: Callable[..., int]) -> None:
    (program,) = step(model).programs
    assert flops_of(program) == 8 * training_flops(model, 64).total_full_attention


def test_state_is_that_of_the_adapters(model: Model) -> None:
    (program,) = step(model).programs
    trained = model.adapter_parameters
    assert program.resident["gpu/weights"] == 2 * model.num_parameters
    assert program.resident["gpu/gradients"] == 4 * trained
    assert program.resident["gpu/optimizer"] == 12 * trained


def test_gradients_of_the_adapters_alone_are_reduced(model: Model, sent: Callable[..., int]) -> None:
    assert sent(step(model, dp=2).programs[0], slot="dp") == 4 * model.adapter_parameters


@pytest.mark.parametrize("plan", [{"zero": 3}, {"fsdp": True}])
def test_frozen_weights_are_split_and_gathered_without_gradients(
    model: Model, plan: dict[str, Any], sent: Callable[..., int]
) -> None:
    job = step(model, dp=2, gradient_dtype="bf16", **plan)
    (program,) = job.programs
    trained, weights = model.adapter_parameters, model.num_parameters
    assert program.resident["gpu/weights"] == weights  # 2 B each, half of them
    assert program.resident["gpu/gradients"] == trained
    assert program.resident["gpu/optimizer"] == 6 * trained
    # 4 micro-batches of each rank: forward all, backward all but the embedding, and gradients of the adapters.
    embedding = model.vocab * model.hidden
    assert sent(program, slot="dp") == 4 * 2 * (2 * weights - embedding + trained)


def test_what_only_frozen_matrices_would_read_is_not_kept(model: Model, new_shard: Callable[..., Shard]) -> None:
    def kept(*targets: Any) -> tuple[int, int]:
        shard = new_shard(replace(model, adapters=LoRA(rank=RANK, targets=targets)))
        return adapted(shard, attention(shard)).kept, adapted(shard, mlp(shard)).kept

    narrow, stream, ffn = 2 * TOKENS * RANK, 2 * TOKENS * HIDDEN, 2 * TOKENS * 688
    whole = kept("q", "up", "down")
    assert kept("q", "up") == (whole[0], whole[1] - narrow - ffn)
    assert kept("up", "down") == (whole[0] - narrow - stream, whole[1])
    assert kept("q", "down") == (whole[0], whole[1] - narrow - stream)


def test_adapters_are_not_quantised_beside_frozen_products_that_are(
    model: Model, new_shard: Callable[..., Shard]
) -> None:
    plain, shard = new_shard(model), new_shard(model, dtype="fp8")
    found = [adapted(s, attention(s)) for s in (plain, shard)]

    def products(block: Block, kind: str) -> set[str]:
        ops = [piece.op for piece in block.forward if isinstance(piece.op, Compute) and piece.op.kind == kind]
        return {kernel.dtype for op in ops for kernel in op.kernels if kernel.flops}

    assert products(found[1], "adapters") == products(found[0], "adapters") == {"bf16"}
    assert products(found[1], "attention") >= {"fp8"}
    other = new_shard(replace(model, adapters=LoRA(rank=RANK, targets=("down",))), dtype="fp8")
    added = found[1].kept - adapted(other, attention(other)).kept
    narrow, quantised = 2 * TOKENS * RANK, TOKENS * HIDDEN
    assert added == 2 * narrow + quantised + 2 * quantised  # the norm's output, and the same as adapters read it
    notes = training_step(model, ParallelPlan(dp=1), global_batch=8, micro_batch=1, seq_len=64, dtype="fp8").notes
    assert any("quantised copies of frozen weights" in note for note in notes)


@pytest.mark.parametrize(
    "plan",
    [
        {},
        {"dp": 2, "zero": 2},
        {"dp": 2, "zero": 3},
        {"dp": 2, "fsdp": True, "recompute": "full", "per_parameter": True},
        {"pp": 2, "recompute": "full"},
        {"pp": 2, "schedule": "zb-h1"},
        {"recompute": "selective", "recompute_modules": ("norm", "activation", "core")},
    ],
)
def test_a_step_ends_and_leaves_nothing(model: Model, plan: dict[str, Any], run_untimed: Callable[..., Any]) -> None:
    run = run_untimed(step(model, **plan))
    assert run.complete
    assert run.lowest >= 0
    assert not any(run.left.values())


def test_frozen_experts_are_not_split_over_ranks_with_others() -> None:
    model = replace(load_model("mixtral-8x7b"), num_layers=2, adapters=LoRA(rank=RANK))
    with pytest.raises(BadInput, match=r"plan.ep: 2 no step is written for it with adapters"):
        step(model, dp=4, ep=2, zero=3)


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        ({"tp": 2}, "plan.tp: 2 no step is written for it with adapters beside frozen weights; nearest: 1"),
        ({"pp": 9}, "plan.pp: 9 leaves a stage without adapters: must be at most the 8 layers; nearest: 8"),
    ],
)
def test_what_no_step_is_written_for_is_refused(model: Model, plan: dict[str, Any], fault: str) -> None:
    with pytest.raises(BadInput) as error:
        step(model, **plan)
    assert fault in str(error.value)
