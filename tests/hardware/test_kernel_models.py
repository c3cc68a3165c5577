"""Kernel cards: what is legal, and which numbers stand for which dtype and kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clustersim.hardware.gemm_model import GemmModel
from clustersim.library import list_cards, load_part

H100 = load_part("kernels", "h100-sxm")
GEMM, ATTENTION = H100.gemm["bf16"], H100.attention["cudnn"]


@pytest.mark.parametrize("name", [name for name, _ in list_cards()["kernels"]])
def test_every_card_loads(name: str) -> None:
    assert load_part("kernels", name).usual_attention in load_part("kernels", name).attention


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        (GEMM, "peak", 1.01),
        (GEMM, "memory_fraction", 0.0),
        (GEMM, "wave", 1.5),
        (GEMM, "tile_half", -1.0),
        (GEMM, "start_latency", float("inf")),
        (ATTENTION, "peak", 0.0),
        (ATTENTION, "backward", 1.2),
        (ATTENTION, "block_latency", -1e-6),
        (H100.memory, "norm", 1.1),
        (H100.memory, "cached", 2.0),
    ],
)
def test_illegal_numbers_are_named(part: GemmModel, key: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{key}: {value}"):
        replace(part, **{key: value})


def test_the_usual_attention_must_be_there() -> None:
    with pytest.raises(ValueError, match="usual_attention: flash-9 must be one of"):
        replace(H100, usual_attention="flash-9")


def test_a_dtype_takes_the_numbers_of_one_alike() -> None:
    assert H100.gemm_of("fp16") == (GEMM, "gemm.bf16")
    assert H100.gemm_of("tf32") == (GEMM, "")
    assert H100.gemm_of("nvfp4") == (H100.gemm["fp8"], "")
    only = replace(H100, gemm={"bf16": GEMM})
    assert only.gemm_of("fp8") == (GEMM, "")
