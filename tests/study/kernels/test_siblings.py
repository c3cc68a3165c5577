"""What a borrowed number is worth: one device's rows under another's numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.hardware.gpu import GPU
from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.hardware.kernel_models import KernelModels
from clustersim.library import load_part
from clustersim.readers.kernel_rows import KernelRow
from clustersim.study.kernels.measured import MeasuredKernel
from clustersim.study.kernels.siblings import sibling_spreads

H100 = load_part("gpu", "h100-sxm")
NOTHING: dict[str, Any] = dict.fromkeys(KernelRow.__dataclass_fields__)
ROW = KernelRow(**NOTHING)


def models(elementwise: float) -> KernelModels:
    assert H100.kernels is not None
    memory = replace(H100.kernels.memory, elementwise=elementwise, cached=0.0)
    return replace(H100.kernels, memory=memory)


def rows(gpu: GPU, num: int = 6) -> list[MeasuredKernel]:
    """Long passes over memory, exactly as the device's own numbers say."""
    kernels = [Kernel(kind="memory", dtype="bf16", flops=0, nbytes=2 ** (36 + i)) for i in range(num)]
    return [
        MeasuredKernel(row=ROW, gpu=gpu, kind="memory", kernels=(k,), seconds=kernel_cost(k, gpu).seconds)
        for k in kernels
    ]


def test_twice_the_fraction_is_off_by_two() -> None:
    slow, fast = (replace(H100, name=name, kernels=models(f)) for name, f in (("slow", 0.4), ("fast", 0.8)))
    numbers = {gpu.name: gpu.kernels for gpu in (slow, fast) if gpu.kernels}
    found = sibling_spreads([*rows(slow), *rows(fast)], numbers)
    assert found == {"memory": pytest.approx(0.6931 / 1.645, rel=1e-3)}


def test_few_rows_and_devices_alone_tell_nothing() -> None:
    other = replace(H100, name="other", kernels=models(0.4))
    numbers = {gpu.name: gpu.kernels for gpu in (H100, other) if gpu.kernels}
    assert sibling_spreads([*rows(H100), *rows(other, num=5)], numbers) == {}
    assert sibling_spreads(rows(H100), numbers) == {}
