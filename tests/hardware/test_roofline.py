"""The roofline, which stands for kernels without a shape: below both roofs, monotone, near published kernels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel, KernelKind
from clustersim.hardware.roofline import roofline
from clustersim.library import load_part

H100, A100, V100 = (load_part("gpu", name) for name in ("h100-sxm", "a100-sxm-80gb", "v100-sxm2"))
NUMBERS = st.integers(min_value=0, max_value=10**18)
KINDS = st.sampled_from(["gemm", "attention", "memory"])


def gemm(m: int, n: int, k: int, dtype: str = "bf16", count: int = 1) -> Kernel:
    size_in, size_out = {"fp8": (1, 2), "fp32": (4, 4)}.get(dtype, (2, 2))
    nbytes = size_in * (m * k + k * n) + size_out * m * n
    return Kernel(kind="gemm", dtype=dtype, flops=2 * m * n * k, nbytes=nbytes, m=m, n=n, k=k, count=count)


@given(kind=KINDS, dtype=st.sampled_from(["fp32", "tf32", "bf16", "fp8"]), flops=NUMBERS, nbytes=NUMBERS)
def test_no_kernel_beats_the_peaks(kind: KernelKind, dtype: str, flops: int, nbytes: int) -> None:
    seconds = roofline(Kernel(kind=kind, dtype=dtype, flops=flops, nbytes=nbytes), H100).seconds
    peak = H100.vector_flop_per_s if kind == "memory" else H100.flop_per_s(dtype)
    assert flops <= seconds * peak
    assert nbytes <= seconds * H100.memory_bandwidth
    assert seconds >= H100.launch_latency


@given(kind=KINDS, flops=NUMBERS, nbytes=NUMBERS, more=NUMBERS)
def test_more_work_is_never_faster(kind: KernelKind, flops: int, nbytes: int, more: int) -> None:
    kernel = Kernel(kind=kind, dtype="bf16", flops=flops, nbytes=nbytes)
    seconds = roofline(kernel, A100).seconds
    assert roofline(replace(kernel, flops=flops + more), A100).seconds >= seconds
    assert roofline(replace(kernel, nbytes=nbytes + more), A100).seconds >= seconds
    assert roofline(replace(kernel, count=3), A100).seconds == pytest.approx(3 * seconds)


@pytest.mark.parametrize("factor", ["tensor_flop_per_s", "memory_bandwidth", "launch_latency"])
def test_a_better_device_is_never_slower(factor: str) -> None:
    better = {
        "tensor_flop_per_s": {dtype: 2 * rate for dtype, rate in A100.tensor_flop_per_s.items()},
        "memory_bandwidth": 2 * A100.memory_bandwidth,
        "launch_latency": A100.launch_latency / 2,
    }
    gpu = replace(A100, **{factor: better[factor]})
    kernels = [gemm(8192, 8192, 8192), gemm(1, 8192, 8192), Kernel(kind="memory", dtype="bf16", flops=0, nbytes=64)]
    pairs = [(roofline(k, gpu).seconds, roofline(k, A100).seconds) for k in kernels]
    assert all(new <= old for new, old in pairs)
    assert any(new < 0.6 * old for new, old in pairs)


@pytest.mark.parametrize(
    ("kernel", "bound"),
    [
        (gemm(8192, 8192, 8192), "tensor"),
        (gemm(8192, 8192, 8192, "fp32"), "vector"),
        (gemm(1, 8192, 8192), "hbm"),
        (Kernel(kind="memory", dtype="bf16", flops=10**6, nbytes=10**9), "hbm"),
        (Kernel(kind="memory", dtype="bf16", flops=10**13, nbytes=10**6), "vector"),
        (Kernel(kind="memory", dtype="bf16", flops=0, nbytes=64), "launch"),
    ],
)
def test_the_bound_is_named(kernel: Kernel, bound: str) -> None:
    assert roofline(kernel, A100).bound == bound


def test_the_formula() -> None:
    kernel = gemm(4096, 4096, 4096, count=2)
    e = A100.efficiency
    achieved = 312e12 * e.gemm_peak * kernel.flops / (kernel.flops + e.gemm_half_flops)
    assert roofline(kernel, A100).seconds == pytest.approx(2 * (kernel.flops / achieved + A100.launch_latency))


def test_fp32_without_matrix_units_runs_on_the_vector_units() -> None:
    assert "fp32" not in H100.tensor_flop_per_s
    cost = roofline(gemm(8192, 8192, 8192, "fp32"), H100)
    achieved = 2 * 8192**3 / cost.seconds
    assert cost.bound == "vector"
    assert 0.6 * H100.vector_flop_per_s < achieved < H100.vector_flop_per_s


def test_a_dtype_without_units_is_refused() -> None:
    with pytest.raises(KeyError, match="v100-sxm2 has no bf16 matrix units, only fp16"):
        roofline(gemm(64, 64, 64), V100)


@pytest.mark.parametrize(
    ("name", "dtype", "provenance"),
    [
        ("h100-sxm", "bf16", "modelled"),
        ("h100-sxm", "fp8", "modelled"),
        ("h100-sxm", "tf32", "assumed"),
        ("h800-sxm", "bf16", "assumed"),
        ("a800-sxm", "bf16", "assumed"),
    ],
)
def test_provenance_follows_the_sources(name: str, dtype: str, provenance: str) -> None:
    assert roofline(gemm(8192, 8192, 8192, dtype), load_part("gpu", name)).provenance == provenance


def test_a_source_of_a_table_counts_for_what_is_in_it() -> None:
    assert (
        roofline(gemm(8192, 8192, 8192), replace(H100, sources={"efficiency": "measured: here"})).provenance
        == "modelled"
    )
    assert roofline(gemm(8192, 8192, 8192), replace(H100, sources={})).provenance == "assumed"


@pytest.mark.parametrize(
    ("name", "kernel", "milliseconds"),
    [
        # aiconfigurator's collected cuBLAS table, TensorRT-LLM 1.0
        ("a100-sxm-80gb", gemm(4096, 8192, 8192), 2.116),
        ("h100-sxm", gemm(4096, 8192, 8192), 0.673),
        ("h100-sxm", gemm(8192, 12288, 4096, "fp8"), 0.667),
        ("h200-sxm", gemm(4096, 16384, 5120), 0.886),
        ("b200", gemm(4096, 12288, 12288), 0.898),
        ("gb200", gemm(4096, 16384, 5120), 0.421),
        # Azure AI-benchmarking-guide, cuBLASLt: 253.7 and 250.8 TFLOP/s
        ("a100-sxm-80gb", gemm(8192, 8192, 8192, "fp16"), 4.334),
        ("a100-sxm-80gb", gemm(6144, 12288, 12288, "fp16"), 7.398),
        # Vidur's MLP profile: residual add of 4096 rows of 8192 in fp16
        ("a100-sxm-80gb", Kernel(kind="memory", dtype="fp16", flops=4096 * 8192, nbytes=3 * 2 * 4096 * 8192), 0.112),
        ("h100-sxm", Kernel(kind="memory", dtype="fp16", flops=4096 * 8192, nbytes=3 * 2 * 4096 * 8192), 0.063),
    ],
)
def test_published_kernels_are_met_within_a_third(name: str, kernel: Kernel, milliseconds: float) -> None:
    """A GEMM within 15 %; a third for a residual add, which beats the one fraction that stands for norms too."""
    gpu = load_part("gpu", name)
    assert isinstance(gpu, GPU)
    tolerance = 0.15 if kernel.kind == "gemm" else 0.33
    assert roofline(kernel, gpu).seconds == pytest.approx(milliseconds / 1e3, rel=tolerance)
