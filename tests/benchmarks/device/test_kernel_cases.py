"""What is measured: shapes of layers, and the kernels of a job with nothing lost in silence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kernel_cases import ATTENTION_FORMS, Case, cases_of, usual_cases

from clustersim.hardware.kernel import Kernel
from clustersim.library.job import load_job
from clustersim.study.point import prepare
from clustersim.workload.job import Job
from clustersim.workload.op import Compute
from clustersim.workload.program import Program

ALL = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4")


def kernels_of(job: Job) -> set[Kernel]:
    ops = [op for program in job.programs for op in program.arrays().ops if isinstance(op, Compute)]
    return {replace(kernel, count=1) for op in ops for kernel in op.kernels}


def job_of(*kernels: Kernel) -> Any:
    program = Program("mine")
    program.add(Compute(name="all", kind="mlp", kernels=kernels), stream="compute")
    return type("Job", (), {"programs": (program,)})()


def test_each_dtype_has_its_products_once() -> None:
    cases = list(usual_cases(ALL))
    assert len(set(cases)) == len(cases)
    products = {
        dtype: [c.kernel for c in cases if c.kernel.kind == "gemm" and c.kernel.dtype == dtype] for dtype in ALL
    }
    assert {len(found) for found in products.values()} == {len(products["bf16"])}
    for found in products.values():
        assert all(kernel.flops == 2 * kernel.m * kernel.n * kernel.k * kernel.batch for kernel in found)
        assert {kernel.m % 16 for kernel in found} == {kernel.n % 16 for kernel in found} == {0}
    widths = [products[dtype][0].nbytes for dtype in ("fp32", "bf16", "fp8", "nvfp4")]
    assert widths == sorted(widths, reverse=True)


def test_attention_is_of_each_kind_and_its_causal_half_is_counted_once() -> None:
    found = [c for c in usual_cases(["bf16"]) if c.kernel.kind == "attention"]
    assert {c.kernel.form for c in found} == set(ATTENTION_FORMS)
    pairs = {(replace(c.kernel, flops=0), c.causal): c.kernel.flops for c in found}
    for (kernel, causal), flops in pairs.items():
        if causal:
            assert pairs[kernel, False] == 2 * flops
    assert not [c for c in usual_cases(["fp8", "fp32"]) if c.kernel.kind == "attention"]


def test_passes_are_of_the_dtypes_that_data_has() -> None:
    assert {c.kernel.dtype for c in usual_cases(ALL) if c.kernel.kind == "memory"} == {"fp32", "fp16", "bf16"}


@pytest.mark.parametrize("name", ["llama-2-7b-tp8-dp2", "mixtral-8x7b-64"])
def test_every_kernel_of_a_job_is_measured_or_told(name: str) -> None:
    job = prepare(load_job(name)).job
    cases, left_out = cases_of(job)
    assert {case.kernel for case in cases} == kernels_of(job)
    assert left_out == []
    assert {case.causal for case in cases if case.kernel.kind == "attention"} == {True}


def test_what_has_no_shape_or_another_mask_is_told() -> None:
    square = Kernel(kind="attention", dtype="bf16", flops=4 * 512**2 * 64, nbytes=1, m=512, n=512, k=64)
    window = replace(square, flops=square.flops // 5)
    shapeless = Kernel(kind="gemm", dtype="bf16", flops=10**9, nbytes=10**6)
    cases, left_out = cases_of(job_of(square, window, shapeless, replace(square, flops=square.flops // 2, count=3)))
    assert cases == [Case(kernel=square), Case(kernel=replace(square, flops=square.flops // 2), causal=True)]
    assert [line.split(":")[0] for line in left_out] == [
        "attention over 512 x 512 tokens, heads of 64",
        "gemm of 1,000,000,000 FLOP",
    ]
