"""Modules and layers in other number formats than the job's: operands, bytes of weights, rules."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.library.model import load_model
from clustersim.workload.job import Job
from clustersim.workload.matrix import Matrix
from clustersim.workload.model import Model
from clustersim.workload.module_dtypes import MODULE_DTYPES, PRODUCTS, by_quantisation, dtype_of_module
from clustersim.workload.op import Compute
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.precision import RECIPES
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

SUPER = load_model("nemotron-3-super")
SMALL = replace(SUPER, num_layers=5, layout="*MEME", vocab=1024)
KEPT = ("attention:bf16", "latent:bf16", "mamba_out:mxfp8", "mtp:bf16")


def step(model: Model = SMALL, *, dtype: str = "nvfp4", **plan: Any) -> Job:
    return training_step(
        model, ParallelPlan(dp=1, **plan), global_batch=1, micro_batch=1, seq_len=256, dtype=dtype, num_devices=1
    )


def products(job: Job) -> dict[tuple[str, int], set[str]]:
    """Number formats of the products of each op of each layer."""
    arrays = job.programs[0].arrays()
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    for k, layer in zip(arrays.op.tolist(), arrays.layer.tolist(), strict=True):
        op = arrays.ops[k]
        for kernel in op.kernels if isinstance(op, Compute) else ():
            if kernel.kind == "gemm":
                found[op.name, layer].add(kernel.dtype)
    return dict(found)


def test_modules_multiply_what_is_listed_for_them() -> None:
    """Chunks of a mixer and routers multiply in bf16 under every recipe."""
    found = products(step(module_dtypes=KEPT))
    assert found["attention forward", 0] == {"bf16"}
    assert found["mamba forward", 1] == {"bf16", "nvfp4", "mxfp8"}
    assert found["experts forward", 2] == {"nvfp4"}
    assert found["shared experts forward", 2] == {"nvfp4"}
    assert found["experts output forward", 2] == {"bf16"}
    assert {name for key, names in found.items() if key[1] >= SMALL.num_layers for name in names} == {"bf16"}
    assert products(step())["attention forward", 0] == {"nvfp4"}


def test_layers_at_the_ends_are_not_quantised_at_all() -> None:
    """What is listed for a module is not for them, and multi-token prediction is behind the last of them."""
    found = products(step(module_dtypes=("mamba_out:mxfp8",), bf16_layers_at_start=1, bf16_layers_at_end=2))
    ends = (0, 3, 4, 5, 6)
    assert {name for key, names in found.items() if key[1] in ends for name in names} == {"bf16"}
    assert found["mamba forward", 1] == {"bf16", "nvfp4", "mxfp8"}
    assert found["experts forward", 2] == {"nvfp4"}


def test_only_what_is_quantised_has_copies() -> None:
    """A bf16 weight has none; one in MXFP8 has two of 33/32 bytes, one in NVFP4 two of 9/16."""
    plain, kept, none = (
        step(module_dtypes=given, dtype=dtype).programs[0].resident["gpu/weights"]
        for given, dtype in (((), "nvfp4"), (KEPT, "nvfp4"), ((), "bf16"))
    )
    out = 2 * SUPER.hidden * 8192
    attention = (2 * 4096 + 2 * 2 * 128) * SUPER.hidden
    latent = 2 * 2 * SUPER.hidden * 1024
    fewer = attention + latent
    module = attention + latent // 2 + 2 * SUPER.hidden**2 + sum(_experts())
    assert plain - kept == (fewer + module) * 9 // 8 + out * 9 // 8 - out * 33 // 16
    assert none < kept


def _experts() -> tuple[int, int]:
    """Weights of a layer's routed experts and of its shared ones."""
    experts = SUPER.experts
    assert experts is not None
    return 2 * 1024 * experts.ffn_hidden * experts.num_experts, 2 * SUPER.hidden * experts.shared_ffn_hidden


def test_words() -> None:
    assert dtype_of_module(("latent:mxfp8", "latent:bf16"), "latent") == "bf16"
    assert dtype_of_module(KEPT, "experts") == ""
    assert {item.partition(":")[0] for item in MODULE_DTYPES} == set(PRODUCTS)
    assert all(item.partition(":")[2] in RECIPES for item in MODULE_DTYPES)


def test_a_recipe_that_quantises_nothing_stays_so() -> None:
    own = Matrix(features_in=8, features_out=8, dtype="mxfp8")
    assert by_quantisation(RECIPES["bf16"], [own]) == {}
    assert list(by_quantisation(RECIPES["nvfp4"], [own, replace(own, dtype="bf16")]).values()) == [64]
    shard = Shard(model=SMALL, micro_batch=1, seq_len=8, bf16_ends=(1, 1))
    assert shard.at_layer(0) is shard


@pytest.mark.parametrize(
    ("plan", "nearest"),
    [
        ({"bf16_layers_at_start": 6}, 5),
        ({"bf16_layers_at_end": -1}, 0),
        ({"bf16_layers_at_start": 3, "bf16_layers_at_end": 4}, 2),
        ({"module_dtypes": ("latent:int8",)}, None),
        ({"module_dtypes": ("latent:bf16", "latent:mxfp8")}, "latent:bf16"),
    ],
)
def test_what_is_no_layer_or_no_format_is_refused(plan: dict[str, Any], nearest: int | str | None) -> None:
    with pytest.raises(BadInput) as refused:
        step(**plan)
    (fault,) = refused.value.faults
    assert fault.key in {f"plan.{name}" for name in plan}
    assert nearest is None or fault.nearest == nearest


def test_what_changes_nothing_is_told() -> None:
    assert any("dtype bf16 quantises nothing" in note for note in step(dtype="bf16", bf16_layers_at_end=1).notes)
    notes = step(module_dtypes=("mlp:bf16", "latent:bf16")).notes
    assert [note for note in notes if "module_dtypes" in note] == [
        f"plan.module_dtypes: mlp has no effect: {SMALL.name} has no {PRODUCTS['mlp']}"
    ]
