"""Attention kernels of before FlashAttention-2: measured on the A100, borrowed on the H100."""

from __future__ import annotations

import pytest

from clustersim.hardware.kernel import Kernel
from clustersim.hardware.kernel_cost import kernel_cost
from clustersim.library.topologies import load_topology

HEADS, SEQUENCES, WIDTH = 48, 4, 64


def kernel(length: int, *, backward: bool, form: str) -> Kernel:
    pairs = HEADS * SEQUENCES * length**2 // 2
    return Kernel(
        kind="attention",
        dtype="fp16",
        flops=pairs * WIDTH * (10 if backward else 4),
        nbytes=(8 if backward else 4) * 2 * HEADS * SEQUENCES * length * WIDTH,
        m=length,
        n=length,
        k=WIDTH,
        batch=HEADS * SEQUENCES,
        form=form,
        backward=backward,
    )


@pytest.mark.parametrize(
    ("length", "backward", "tflop_per_s"), [(4096, False, 112.87), (16384, False, 122.21), (16384, True, 80.58)]
)
def test_triton_as_published(length: int, backward: bool, tflop_per_s: float) -> None:
    """triton-lang/triton pull request 1917, causal, 48 heads of 64 columns, four sequences."""
    gpu = load_topology("dgx-a100", nodes=1).gpus[0]
    given = kernel(length, backward=backward, form="triton")
    cost = kernel_cost(given, gpu)
    assert given.flops / cost.seconds / 1e12 == pytest.approx(tflop_per_s, rel=0.12)
    assert cost.provenance == "modelled"


@pytest.mark.parametrize("form", ["flash-1", "triton"])
def test_borrowed_on_the_h100(form: str) -> None:
    old, new = (
        {form: kernel_cost(kernel(8192, backward=True, form=form), gpu) for form in (form, "flash-2")}
        for gpu in (load_topology(card, nodes=1).gpus[0] for card in ("dgx-a100", "dgx-h100"))
    )
    assert new[form].provenance == "assumed"
    for costs in (old, new):
        assert costs[form].seconds > costs["flash-2"].seconds
    gain = old[form].seconds / new[form].seconds
    assert gain == pytest.approx(old["flash-2"].seconds / new["flash-2"].seconds, rel=0.05)
