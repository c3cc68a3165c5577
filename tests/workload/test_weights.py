"""Bytes kept and moved for each parameter, against the tables of ZeRO, Megatron-LM and DeepSeek-V3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.kernels import memory_pass
from clustersim.workload.matrix import Matrix
from clustersim.workload.optimizer import OPTIMIZERS, find_optimizer
from clustersim.workload.precision import RECIPES, Dtype, Recipe
from clustersim.workload.weights import Weights

KEYS = ("gpu/weights", "gpu/gradients", "gpu/optimizer")
HIDDEN = Matrix(features_in=128, features_out=128, count=6)
HEAD = Matrix(features_in=128, features_out=256, hidden=False)
PARAMETERS = 6 * 128 * 128 + 128 * 256 + 1024


@pytest.mark.parametrize(
    ("recipe", "gradient_dtype", "per_parameter"),
    [
        ("bf16", "fp32", (2, 4, 12)),  # Megatron-LM: 18
        ("bf16", "bf16", (2, 2, 12)),  # ZeRO: 16
        ("fp16", "fp32", (2, 4, 12)),
        ("bf16_pure", "bf16", (2, 2, 4)),  # a model cast to bf16: weights, gradients and both averages
        ("fp32", "fp32", (4, 4, 8)),  # Megatron-LM: 16
        ("tf32", "fp32", (4, 4, 8)),
        ("fp8_blockwise", "fp32", (2, 4, 4 + 2 + 2)),  # DeepSeek-V3: bf16 moments
    ],
)
def test_bytes_a_parameter(recipe: str, gradient_dtype: Dtype, per_parameter: tuple[int, int, int]) -> None:
    held = Weights(parameters=1000, recipe=recipe, gradient_dtype=gradient_dtype).resident_bytes()
    assert tuple(held[key] for key in KEYS) == tuple(1000 * n for n in per_parameter)


@pytest.mark.parametrize(
    ("recipe", "copies"),
    [("bf16", 0), ("fp8", 2), ("fp8_blockwise", 2 * (1 + 4 / 128**2)), ("mxfp8", 2 * 33 / 32), ("nvfp4", 2 * 9 / 16)],
)
def test_quantised_copies_of_the_hidden_matrices(recipe: str, copies: float) -> None:
    held = Weights(
        parameters=PARAMETERS, recipe=recipe, gradient_dtype="fp32", matrices=[HIDDEN, HEAD]
    ).resident_bytes()
    assert held["gpu/weights"] == 2 * PARAMETERS + copies * 6 * 128 * 128
    split = Weights(
        parameters=PARAMETERS, recipe=recipe, gradient_dtype="fp32", matrices=[HIDDEN, HEAD], weight_shards=4
    ).resident_bytes()
    assert split["gpu/weights"] == 2 * PARAMETERS // 4


def test_zero_splits_state_then_gradients_then_weights() -> None:
    held = Weights(parameters=1001, recipe="bf16", gradient_dtype="fp32", state_shards=4).resident_bytes()
    assert held == {"gpu/weights": 2002, "gpu/gradients": 4004, "gpu/optimizer": 12 * 251}
    held = Weights(
        parameters=1001, recipe="bf16", gradient_dtype="fp32", state_shards=4, gradient_shards=4
    ).resident_bytes()
    assert held == {"gpu/weights": 2002, "gpu/gradients": 4 * 251, "gpu/optimizer": 12 * 251}
    held = Weights(
        parameters=1001, recipe="bf16", gradient_dtype="fp32", state_shards=4, gradient_shards=4, weight_shards=4
    ).resident_bytes()
    assert held == {"gpu/weights": 2 * 251, "gpu/gradients": 4 * 251, "gpu/optimizer": 12 * 251}


def test_zero_paper_on_64_gpus() -> None:
    # Rajbhandari et al. 2020, figure 1: 7.5B parameters over 64 ranks, 31.4, 16.6 and 1.9 GB.
    splits: Sequence[dict[str, Any]] = (
        {"state_shards": 64},
        {"state_shards": 64, "gradient_shards": 64},
        {"state_shards": 64, "gradient_shards": 64, "weight_shards": 64},
    )
    held = [
        Weights(parameters=7_500_000_000, recipe="fp16", gradient_dtype="fp16", **split).resident_bytes()
        for split in splits
    ]
    assert [round(sum(h.values()) / 1e9, 1) for h in held] == [31.4, 16.6, 1.9]


def test_fsdp2_needs_no_second_copy_of_its_weights() -> None:
    fsdp2 = replace(RECIPES["bf16"], weights="fp32", master=None, gathered="bf16")
    splits: dict[str, Any] = {"state_shards": 8, "gradient_shards": 8, "weight_shards": 8}
    held = Weights(parameters=8000, recipe=fsdp2, optimizer="adamw", gradient_dtype="fp32", **splits).resident_bytes()
    assert sum(held.values()) == (4 + 4 + 8) * 1000


def test_175b_on_64_gpus() -> None:
    # Korthikanti et al. 2022, figure 1: parameters and optimizer of GPT-3 on t = p = 8, first stage, 45.6 GiB.
    first_stage = 12 * (12 * 12288**2 + 13 * 12288) // 8 + (51200 // 8 + 2048) * 12288
    held = sum(Weights(parameters=first_stage, recipe="fp16", gradient_dtype="fp32").resident_bytes().values())
    assert held / 2**30 == pytest.approx(45.5625, rel=0.05)


def test_passes_of_adam() -> None:
    bf16 = Weights(parameters=1000, recipe="bf16", gradient_dtype="fp32").update()
    assert bf16.nbytes == 1000 * (4 + (4 + 12 + 12 + 2) + 4)
    fp32 = Weights(parameters=1000, recipe="fp32", gradient_dtype="fp32").update()
    assert fp32.nbytes == 1000 * (4 + (4 + 12 + 12) + 4)
    fp16 = Weights(parameters=1000, recipe="fp16", gradient_dtype="fp32").update()
    assert fp16.nbytes == bf16.nbytes + 1000 * 8
    assert bf16.flops == 0
    assert (bf16.name, bf16.category) == ("adam", "optimizer")


def test_a_shard_is_updated_but_all_gradients_are_zeroed() -> None:
    assert (
        Weights(parameters=1000, recipe="bf16", gradient_dtype="fp32", state_shards=4).update().nbytes
        == 250 * 34 + 1000 * 4
    )


def test_hidden_weights_are_cast_once_a_step_on_every_rank() -> None:
    def step(recipe: str, shards: int) -> int:
        return (
            Weights(
                parameters=PARAMETERS,
                recipe=recipe,
                gradient_dtype="fp32",
                state_shards=shards,
                matrices=[HIDDEN, HEAD],
            )
            .update()
            .nbytes
        )

    assert step("fp8", 1) - step("bf16", 1) == (2 + 2) * 6 * 128 * 128
    assert step("fp8", 4) - step("bf16", 4) == (2 + 2) * 6 * 128 * 128
    assert step("fp8_current", 1) - step("fp8", 1) == 2 * 6 * 128 * 128


def test_split_weights_are_cast_when_gathered_and_split_gradients_zeroed_in_part() -> None:
    def step(recipe: str, **splits: Any) -> int:
        matrices = [HIDDEN, HEAD]
        return (
            Weights(
                parameters=PARAMETERS, recipe=recipe, gradient_dtype="fp32", state_shards=4, matrices=matrices, **splits
            )
            .update()
            .nbytes
        )

    assert step("fp8", weight_shards=4) == step("bf16")
    assert step("bf16") - step("bf16", gradient_shards=4) == 4 * PARAMETERS * 3 // 4


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_optimizer_with_every_recipe(optimizer: str, recipe: str) -> None:
    gradient_dtype = RECIPES[recipe].gradients
    held = Weights(
        parameters=PARAMETERS,
        recipe=recipe,
        optimizer=optimizer,
        gradient_dtype=gradient_dtype,
        matrices=[HIDDEN, HEAD],
    ).resident_bytes()
    adam = Weights(
        parameters=PARAMETERS, recipe=recipe, gradient_dtype=gradient_dtype, matrices=[HIDDEN, HEAD]
    ).resident_bytes()
    assert held["gpu/optimizer"] <= adam["gpu/optimizer"]
    assert (held["gpu/weights"], held["gpu/gradients"]) == (adam["gpu/weights"], adam["gpu/gradients"])
    step = Weights(
        parameters=PARAMETERS,
        recipe=recipe,
        optimizer=optimizer,
        gradient_dtype=gradient_dtype,
        matrices=[HIDDEN, HEAD],
    ).update()
    assert step.name == optimizer
    assert (step.flops > 0) == (optimizer == "muon")


@given(st.integers(1, 50), st.integers(1, 12), st.sampled_from(sorted(OPTIMIZERS)))
def test_bytes_grow_with_the_parameters_and_shards_make_up_the_whole(scale: int, shards: int, optimizer: str) -> None:
    def held(times: int, split: int = 1) -> int:
        matrices = [Matrix(features_in=64, features_out=64, count=times)]
        return Weights(
            parameters=times * 8192,
            recipe="bf16",
            optimizer=optimizer,
            gradient_dtype="fp32",
            state_shards=split,
            matrices=matrices,
        ).resident_bytes()["gpu/optimizer"]

    assert held(scale * shards) == scale * shards * held(1)
    whole, part = held(scale * shards), held(scale * shards, shards)
    assert whole <= shards * part <= whole + 64 * shards


def test_muon_takes_two_thirds_of_adams_state_where_all_is_hidden() -> None:
    # Moonlight, section 2.3: one average where AdamW keeps two, beside the master copy.
    def state(optimizer: str) -> int:
        matrices = [Matrix(features_in=64, features_out=64)]
        return Weights(
            parameters=4096, recipe="bf16", optimizer=optimizer, gradient_dtype="fp32", matrices=matrices
        ).resident_bytes()["gpu/optimizer"]

    assert (state("muon"), state("adamw")) == (8 * 4096, 12 * 4096)


def test_an_own_optimizer_is_taken_as_it_is() -> None:
    class SignOfGradient:
        name = "sign"

        def state_nbytes(self, parameters: int, *, recipe: Recipe, matrices: Sequence[Matrix], shards: int) -> int:
            return 0

        def kernels(
            self, parameters: int, *, recipe: Recipe, gradient_width: int, matrices: Sequence[Matrix], shards: int
        ) -> tuple[Kernel, ...]:
            return (memory_pass((gradient_width + 2 * recipe.updated_width) * parameters // shards, dtype="fp32"),)

        def gathered_nbytes(self, matrices: Sequence[Matrix], shards: int) -> int:
            return 0

    own = SignOfGradient()
    assert find_optimizer(own) is own
    assert (
        Weights(parameters=1000, recipe="bf16", optimizer=own, gradient_dtype="fp32").resident_bytes()["gpu/optimizer"]
        == 4 * 1000
    )
    step = Weights(parameters=1000, recipe="bf16", optimizer=own, gradient_dtype="fp32", state_shards=2).update()
    assert (step.name, step.nbytes) == ("sign", 500 * 4 + 500 * 12 + 1000 * 4)


@pytest.mark.parametrize(
    ("recipe", "gradient_dtype", "shards", "expected"),
    [("fp16", "fp16", 1, 4000), ("bf16", "bf16", 4, 1000), ("bf16", "fp32", 1, 0), ("fp32", "bf16", 1, 0)],
)
def test_an_update_of_fp32_weights_copies_16_bit_gradients(
    recipe: str, gradient_dtype: Dtype, shards: int, expected: int
) -> None:
    weights = Weights(parameters=1000, recipe=recipe, gradient_dtype=gradient_dtype, state_shards=shards)
    assert weights.update_workspace() == expected
