"""A whole layer under each recipe: which kernels change, and what that is worth on a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.roofline import roofline
from clustersim.library.part import load_part
from clustersim.workload.layers.placed import Placed, blocks
from clustersim.workload.matrix import elements, hidden_matrices
from clustersim.workload.model import Model
from clustersim.workload.op import Compute
from clustersim.workload.precision import RECIPES
from clustersim.workload.shape.sliding_window import SlidingWindow
from clustersim.workload.shard import Shard
from clustersim.workload.stages import Chunk

QUANTISED = [name for name, recipe in RECIPES.items() if recipe.quantisation]


@pytest.fixture(scope="module")
def wide(llama: Model) -> Model:
    """Large enough that products, not launches, take the time."""
    return replace(llama, num_layers=2, hidden=8192, num_heads=64, num_kv_heads=8, head_dim=128, ffn_hidden=28672)


def placed(shard: Shard) -> tuple[Placed, ...]:
    whole = Chunk(first_layer=0, num_layers=shard.model.num_layers, has_embedding=True, has_head=True)
    return blocks(shard, whole, tied_here=shard.model.tied_embeddings)


def kernels(shard: Shard, *kinds: str) -> list[Kernel]:
    """Of all blocks, or of those of some kinds."""
    return [
        kernel
        for p in placed(shard)
        if not kinds or p.block.kind in kinds
        for piece in (*p.block.forward, *p.block.backward)
        if isinstance(piece.op, Compute)
        for kernel in piece.op.kernels
    ]


@pytest.mark.parametrize("recipe", QUANTISED)
def test_only_linear_products_of_layers_are_quantised(
    llama: Model, new_shard: Callable[..., Shard], recipe: str
) -> None:
    shard = new_shard(llama, dtype=recipe, attention="unfused")
    units = RECIPES[recipe].activation_operand.dtype
    narrow = [k for k in kernels(shard) if k.kind == "gemm" and k.dtype == units]
    assert len(narrow) == llama.num_layers * 4 * 3
    assert sum(k.flops for k in narrow) == 6 * shard.tokens * llama.num_layers * sum(
        rows * columns for rows, columns in llama.layer_matrices.values()
    )
    others = Counter(k.dtype for k in kernels(shard, "head", "embedding") if k.kind == "gemm")
    assert others == {"bf16": 3}


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_kernel_has_a_dtype_of_its_recipe(llama: Model, new_shard: Callable[..., Shard], recipe: str) -> None:
    of = RECIPES[recipe]
    allowed = {of.activation_operand.dtype, of.products, of.activations}
    found = kernels(new_shard(llama, dtype=recipe))
    assert {k.dtype for k in found if k.kind != "memory"} <= allowed
    assert {k.dtype for k in found if k.kind == "memory"} <= {of.activations, "fp32"}  # the loss is in fp32


@pytest.mark.parametrize(("tp", "embedding_dim"), [(1, None), (2, None), (4, None), (1, 64)])
def test_matrices_are_the_parameters_without_vectors(
    llama: Model, gpt: Model, new_shard: Callable[..., Shard], tp: int, embedding_dim: int | None
) -> None:
    for model in (llama, replace(gpt, qk_norm=True)):
        shard = new_shard(replace(model, embedding_dim=embedding_dim), tp=tp)
        for p in placed(shard):
            hidden = elements(hidden_matrices(p.block.matrices))
            assert p.block.kind in ("attention", "mlp") or hidden == 0
            vectors = p.block.parameters - elements(p.block.matrices)
            learned = shard.model.max_seq_len * shard.model.hidden if shard.model.positions == "learned" else 0
            at_most = learned if p.block.kind == "embedding" else 4 * shard.model.ffn_hidden
            assert 0 <= vectors <= at_most
        found = sum(elements(hidden_matrices(p.block.matrices)) for p in placed(shard))
        assert tp * found == model.num_layers * sum(m * n for m, n in model.layer_matrices.values())


def seconds(shard: Shard, gpu: GPU) -> float:
    return sum(roofline(kernel, gpu).seconds for kernel in kernels(shard))


@pytest.mark.parametrize(
    ("gpu", "recipe"),
    [
        ("h100-sxm", "fp8"),
        ("h100-sxm", "fp8_current"),
        ("h800-sxm", "fp8_blockwise"),
        ("b200", "mxfp8"),
        ("gb200", "nvfp4"),
    ],
)
def test_faster_than_bf16_by_less_than_the_ratio_of_peaks(
    wide: Model, new_shard: Callable[..., Shard], gpu: str, recipe: str
) -> None:
    device = load_part("gpu", gpu)
    units = RECIPES[recipe].activation_operand.dtype
    ratio = device.tensor_flop_per_s[units] / device.tensor_flop_per_s["bf16"]
    gain = seconds(new_shard(wide, seq_len=8192), device) / seconds(new_shard(wide, seq_len=8192, dtype=recipe), device)
    assert 1 < gain < ratio


def test_one_more_search_costs_time(wide: Model, new_shard: Callable[..., Shard]) -> None:
    device = load_part("gpu", "h100-sxm")
    delayed, current = (seconds(new_shard(wide, dtype=dtype), device) for dtype in ("fp8", "fp8_current"))
    assert delayed < current


@pytest.mark.parametrize(("gpu", "recipe"), [("a100-sxm-80gb", "fp8"), ("h100-sxm", "mxfp8"), ("mi355x", "nvfp4")])
def test_a_gpu_without_the_units_says_which_it_has(
    llama: Model, new_shard: Callable[..., Shard], gpu: str, recipe: str
) -> None:
    with pytest.raises(KeyError, match=f"{gpu} has no {recipe} matrix units, only .*bf16"):
        seconds(new_shard(llama, dtype=recipe), load_part("gpu", gpu))


def test_attention_in_fp8_casts_what_it_reads(llama: Model, new_shard: Callable[..., Shard]) -> None:
    """Queries, keys and values forward, the gradient of the output backward."""
    usual, narrow = (new_shard(llama, dtype="mxfp8", attention=name) for name in ("cudnn", "cudnn-fp8"))
    added = Counter(kernels(narrow, "attention")) - Counter(kernels(usual, "attention"))
    cores = [k for k in added.elements() if k.kind == "attention"]
    assert {(k.dtype, k.form) for k in cores} == {("mxfp8", "cudnn-mxfp8")}
    features = (narrow.heads + 2 * narrow.kv_heads) * llama.head_dim, narrow.heads * llama.head_dim
    quantisation = RECIPES["mxfp8"].quantisation
    assert quantisation is not None
    expected = [quantisation.cast_nbytes(narrow.tokens * each, width=2) for each in features]
    passes = [k.nbytes for k in added.elements() if k.kind == "memory"]
    assert sorted(passes) == sorted(llama.num_layers * expected)


@pytest.mark.parametrize(("recipe", "kernel"), [("fp8_current", "cudnn-fp8"), ("mxfp8", "cudnn-mxfp8")])
def test_mxfp8_has_an_attention_kernel_of_its_own(
    llama: Model, new_shard: Callable[..., Shard], recipe: str, kernel: str
) -> None:
    assert new_shard(llama, dtype=recipe, attention="cudnn-fp8").attention_form == kernel


def test_attention_of_layers_that_are_not_quantised_is_not_in_fp8(
    llama: Model, new_shard: Callable[..., Shard]
) -> None:
    narrow = new_shard(llama, dtype="mxfp8", attention="cudnn-fp8").unquantised
    assert (narrow.attention_form, narrow.recipe.quantisation) == ("cudnn", None)


def test_in_fp8_a_window_saves_time_forward_alone(llama: Model, new_shard: Callable[..., Shard]) -> None:
    windowed = replace(llama, window=SlidingWindow(tokens=32))

    def flops(model: Model, *, backward: bool) -> int:
        shard = new_shard(model, dtype="mxfp8", attention="cudnn-fp8")
        return sum(k.flops for k in kernels(shard) if k.kind == "attention" and k.backward is backward)

    assert flops(windowed, backward=False) < flops(llama, backward=False)
    assert flops(windowed, backward=True) == flops(llama, backward=True)
