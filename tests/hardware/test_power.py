"""Power limits and clocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.hardware.power import Power
from clustersim.library.part import load_part

POWER = Power(limit=400.0, idle=80.0, matrix=555.0, memory=120.0)
SECONDS = st.floats(1e-6, 10.0)


def test_what_is_within_the_limit_runs_at_full_clock() -> None:
    assert POWER.clock(matrix_j=555 * 0.5, memory_s=0.0, scaled_s=1.0, fixed_s=0.0) == 1


def test_products_one_after_another_run_at_the_cube_root_of_the_room() -> None:
    clock = POWER.clock(matrix_j=555 * 0.84, memory_s=0.0, scaled_s=1.0, fixed_s=0.0)
    exact = ((400 - 80) / (555 * 0.84)) ** (1 / 3)
    assert exact - 1 / 64 < clock <= exact


def test_time_between_products_raises_the_clock() -> None:
    alone = POWER.clock(matrix_j=555 * 0.84, memory_s=0.0, scaled_s=1.0, fixed_s=0.0)
    assert POWER.clock(matrix_j=555 * 0.84, memory_s=0.1, scaled_s=1.0, fixed_s=0.25) > alone


@given(matrix=SECONDS, memory=SECONDS, more=SECONDS)
def test_power_is_within_the_limit_or_the_clock_at_its_lowest(matrix: float, memory: float, more: float) -> None:
    scaled, fixed = matrix + more, memory
    clock = POWER.clock(matrix_j=555 * matrix, memory_s=memory, scaled_s=scaled, fixed_s=fixed)
    assert 0.5 <= clock <= 1
    watts = 80 + (555 * matrix * clock**2 + 120 * memory) / (scaled / clock + fixed)
    assert clock == 0.5 or watts <= 400 * (1 + 1e-9)


def test_the_clock_of_a_measured_product_is_the_one_it_ran_at() -> None:
    clock = POWER.clock_when(matrix_j=555 * 0.84, memory_s=0.0, seconds=1 / 0.8)
    assert 80 + 555 * 0.84 * clock**2 * 0.8 == pytest.approx(400)
    assert POWER.clock_when(matrix_j=0.0, memory_s=1.0, seconds=1.0) == 1


def test_products_that_were_measured_draw_their_own_power_and_attention_does_not() -> None:
    own = Power(limit=400.0, idle=80.0, matrix=500.0, memory=120.0, products={"bf16": 700.0})
    assert own.matrix_j("gemm", "bf16", 2.0) == 1400
    assert own.matrix_j("gemm", "fp8", 2.0) == own.matrix_j("attention", "bf16", 2.0) == 1000
    assert own.matrix_j("memory", "bf16", 2.0) == 0
    with pytest.raises(ValueError, match=r"products\.fp8"):
        Power(limit=400.0, idle=80.0, matrix=500.0, memory=120.0, products={"fp8": 0.0})


def test_an_attention_kernel_that_was_measured_draws_its_own_power() -> None:
    own = Power(limit=400.0, idle=80.0, matrix=500.0, memory=120.0, attention={"flash-2": 700.0})
    assert own.matrix_j("attention", "bf16", 2.0, "flash-2") == 1400
    assert own.matrix_j("attention", "bf16", 2.0, "cudnn") == own.matrix_j("gemm", "bf16", 2.0) == 1000
    with pytest.raises(ValueError, match=r"attention\.flash-2"):
        Power(limit=400.0, idle=80.0, matrix=500.0, memory=120.0, attention={"flash-2": 0.0})


def test_a_limit_below_idle_is_refused() -> None:
    with pytest.raises(ValueError, match="idle"):
        Power(limit=50.0, idle=80.0, matrix=500.0, memory=100.0)


def test_a_lower_clock_slows_what_computes_and_not_the_memory() -> None:
    gpu = load_part("gpu", "a100-sxm-80gb")
    slow = gpu.at_clock(0.75)
    assert slow.flop_per_s("bf16") == 0.75 * gpu.flop_per_s("bf16")
    assert slow.vector_flop_per_s == 0.75 * gpu.vector_flop_per_s
    assert slow.memory_bandwidth == gpu.memory_bandwidth
    assert gpu.at_clock(1.0) is gpu
