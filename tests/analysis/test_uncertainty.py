"""What residuals of kernels and collectives add up to over a step."""

from __future__ import annotations

import math

import pytest

from clustersim.analysis.uncertainty import step_spread
from clustersim.hardware.kernel import Kernel
from clustersim.trace.timed_work import TimedWork

NOTHING = {"compute": 0.0, "optimizer": 0.0, "exposed_comm": {"tp": 0.0, "dp": 0.0}, "exposed_copy": 0.0, "host": 0.0}
NOTHING |= {"bubble": 0.0, "wait": 0.0}
GEMM = Kernel(kind="gemm", dtype="bf16", flops=2, nbytes=6, m=1, n=1, k=1)
FP8 = Kernel(kind="gemm", dtype="fp8", flops=2, nbytes=6, m=1, n=1, k=1)
PASS = Kernel(kind="memory", dtype="bf16", flops=0, nbytes=6)


def work(kernel: Kernel, seconds: float, spread: float, category: str = "compute", device: str = "one") -> TimedWork:
    return TimedWork(
        job=0,
        category=category,
        kind=kernel.kind,
        device=device,
        kernel=kernel,
        seconds=seconds,
        provenance="modelled",
        spread=spread,
    )


def collective(kind: str, axis: str, seconds: float, spread: float) -> TimedWork:
    return TimedWork(
        job=0,
        category="communication",
        kind=kind,
        axis=axis,
        seconds=seconds,
        provenance="modelled",
        spread=spread,
    )


def test_kernels_of_one_kind_are_off_together() -> None:
    step = NOTHING | {"compute": 2.0}
    assert step_spread([work(GEMM, 10.0, 0.1), work(GEMM, 30.0, 0.2)], step) == pytest.approx(0.175)


@pytest.mark.parametrize("other", [work(PASS, 10.0, 0.1), work(FP8, 10.0, 0.1), work(GEMM, 10.0, 0.1, device="two")])
def test_different_kinds_dtypes_and_devices_are_independent(other: TimedWork) -> None:
    step = NOTHING | {"compute": 2.0}
    assert step_spread([work(GEMM, 10.0, 0.1), other], step) == pytest.approx(0.1 / math.sqrt(2))


def test_bubbles_and_waiting_are_off_with_what_others_compute() -> None:
    step = NOTHING | {"compute": 2.0, "bubble": 1.0, "wait": 1.0}
    assert step_spread([work(GEMM, 10.0, 0.1)], step) == pytest.approx(0.1)


def test_of_communication_only_what_is_exposed_counts() -> None:
    timed = [work(GEMM, 10.0, 0.1), collective("all_reduce", "dp", 50.0, 0.5)]
    assert step_spread(timed, NOTHING | {"compute": 2.0}) == pytest.approx(0.1)
    exposed = NOTHING | {"compute": 3.0, "exposed_comm": {"tp": 0.0, "dp": 1.0}}
    assert step_spread(timed, exposed) == pytest.approx(math.hypot(0.1 * 3, 0.5 * 1) / 4)


def test_collectives_of_different_kinds_share_an_axis_by_their_times() -> None:
    timed = [collective("all_gather", "tp", 3.0, 0.2), collective("reduce_scatter", "tp", 1.0, 0.4)]
    step = NOTHING | {"exposed_comm": {"tp": 8.0, "dp": 0.0}}
    assert step_spread(timed, step) == pytest.approx(math.hypot(0.2 * 0.75, 0.4 * 0.25))


def test_an_optimizer_of_the_same_kind_is_off_with_the_rest() -> None:
    timed = [work(PASS, 1.0, 0.2), work(PASS, 5.0, 0.2, category="optimizer")]
    assert step_spread(timed, NOTHING | {"compute": 1.0, "optimizer": 1.0}) == pytest.approx(0.2)


def test_a_step_of_no_time_is_not_off() -> None:
    assert step_spread([work(GEMM, 1.0, 0.2)], NOTHING) == 0.0
