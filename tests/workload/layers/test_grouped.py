"""Products of experts, in one launch or one after the other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.library.model import load_model
from clustersim.workload.layers.grouped import grouped
from clustersim.workload.layers.kernels import linear, linear_weight_gradient
from clustersim.workload.shard import Shard

TOKENS = (300, 200, 100, 424)


def shard(dtype: str, **given: object) -> Shard:
    whole = Shard(model=load_model("mixtral-8x7b"), dtype=dtype, tp=1, micro_batch=1, seq_len=1024)
    return replace(whole, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dtype", "casts"), [("bf16", 0), ("mxfp8", 1), ("fp8_blockwise", 1), ("fp8_current", 2), ("fp8", 0), ("nvfp4", 0)]
)
def test_each_expert_is_cast_and_multiplied_by_itself(dtype: str, casts: int) -> None:
    together, each = (
        grouped(linear, shard(dtype, expert_kernels=how), 4096, 14336, TOKENS) for how in ("grouped", "each")
    )
    assert each[-1] == replace(together[-1], looped=len(TOKENS) - 1)
    assert len(each) == len(together)
    for one, cut in zip(together[:-1], each[:-1], strict=True):
        if casts:
            assert (cut.count, cut.looped) == (casts * len(TOKENS), casts * len(TOKENS) - 1)
        else:
            assert cut == one
        assert one.nbytes <= cut.nbytes * cut.count < one.nbytes + cut.count


def test_weight_gradients_cast_nothing() -> None:
    (product,) = grouped(linear_weight_gradient, shard("mxfp8", expert_kernels="each"), 4096, 14336, TOKENS)
    assert product.looped == len(TOKENS) - 1


def test_one_expert_is_one_launch() -> None:
    together, each = (
        grouped(linear, shard("mxfp8", expert_kernels=how), 4096, 14336, (512,)) for how in ("grouped", "each")
    )
    assert together == each
