"""Residuals of cards: what they are, and where kernels and collectives get their spread from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_models import SIBLINGS
from clustersim.hardware.kernel_table import KernelTable, TimedKernel
from clustersim.hardware.residual import SMALL, Residual, spread
from clustersim.hardware.roofline import SPREAD
from clustersim.library import list_cards, load_part
from clustersim.library.topologies import load_topology

H100 = load_part("gpu", "h100-sxm")
BORROWED = [
    name for name, _ in list_cards()["gpu"] if load_part("gpu", name).sources.get("kernels", "").startswith("assumed")
]


def gemm(m: int = 4096, dtype: str = "bf16") -> Kernel:
    return Kernel(kind="gemm", dtype=dtype, flops=2 * m**3, nbytes=6 * m * m, m=m, n=m, k=m)


def test_of_a_normal_error_the_standard_deviation() -> None:
    errors = np.expm1(np.random.default_rng(3).normal(0.0, 0.1, 20_000))
    assert spread(errors) == pytest.approx(0.1, rel=0.03)


def test_small_payloads_have_their_own() -> None:
    assert [Residual(small=0.3, large=0.1).of(n) for n in (8, SMALL - 1, SMALL)] == [0.3, 0.3, 0.1]


@pytest.mark.parametrize(("key", "value"), [("small", -0.1), ("large", float("inf"))])
def test_illegal_residuals_are_named(key: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{key}: "):
        replace(Residual(small=0.1, large=0.1), **{key: value})


def test_a_part_of_no_kind_is_refused() -> None:
    assert H100.kernels is not None
    with pytest.raises(ValueError, match=r"residual: conv.bf16 must be of one of gemm, attention, memory"):
        replace(H100.kernels, residual={"conv.bf16": 0.1})
    with pytest.raises(ValueError, match=r"residual.memory: -1 must be zero or positive"):
        replace(H100.kernels, residual={"memory": -1})


def test_measured_numbers_have_their_residual_and_others_that_between_devices() -> None:
    assert H100.kernels is not None
    own = H100.kernels.residual
    assert kernel_cost(gemm(), H100).spread == own["gemm.bf16"]
    assert kernel_cost(gemm(dtype="fp8"), H100).spread == own["gemm.fp8"]
    assert kernel_cost(gemm(dtype="tf32"), H100).spread == SIBLINGS["gemm"]
    attention = Kernel(kind="attention", dtype="bf16", flops=10**9, nbytes=10**6, m=4096, n=4096, k=128, batch=8)
    assert kernel_cost(attention, H100).spread == own["attention.cudnn"]
    assert kernel_cost(replace(attention, backward=True), H100).spread == SIBLINGS["attention"]
    norm = Kernel(kind="memory", dtype="bf16", flops=0, nbytes=10**7, form="norm")
    assert kernel_cost(norm, H100).spread == own["memory"]
    assert kernel_cost(replace(norm, form="softmax"), H100).spread == SIBLINGS["memory"]


@pytest.mark.parametrize("name", BORROWED)
def test_borrowed_numbers_are_never_surer_than_between_devices(name: str) -> None:
    gpu: GPU = load_part("gpu", name)
    assert kernel_cost(gemm(dtype="fp16"), gpu).spread >= SIBLINGS["gemm"]


def test_without_kernel_models_the_curves_have_theirs() -> None:
    gpu = replace(H100, kernels=None)
    assert kernel_cost(gemm(), gpu).spread == SPREAD["gemm"]


def test_a_measurement_is_surer_than_what_lies_between_two_and_that_than_the_model() -> None:
    rows = [
        TimedKernel(device=H100.name, kernel=gemm(m), seconds=kernel_cost(gemm(m), H100).seconds) for m in (1024, 4096)
    ]
    found = [KernelTable(rows=rows)(gemm(m), H100).spread for m in (1024, 2048, 8192)]
    assert found == sorted(found)
    assert len(set(found)) == 3


def test_a_topology_knows_whether_its_library_was_measured() -> None:
    assert set(load_topology("dgx-h100", nodes=2).residuals) == {"inside", "between"}
    assert load_topology("workstation-4090").residuals.get("inside") is None
