"""ZeRO-1 within neighbours: gradients over all ranks, weights and optimizer state within a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.sharding import ZeroWithin


@pytest.mark.parametrize("inner", [2, 8])
def test_volume_and_memory(
    inner: int, model: cs.Model, new_step: Callable[..., cs.Job], payloads: Callable[..., Any]
) -> None:
    job = new_step(sharding=ZeroWithin(inner=inner, weight=2, gradient=2), gradient_dtype="bf16", micro_batches=1)
    nbytes = 2 * model.num_parameters
    assert payloads(job) == {("dp", "all_reduce"): nbytes, ("dp_inner", "all_gather"): nbytes}
    held = sum(job.programs[0].resident.values())
    assert held == pytest.approx((4 + 12 / inner) * model.num_parameters, abs=16)


def test_ends_of_the_scale() -> None:
    widths: dict[str, Any] = {"weight": 2, "gradient": 2}
    all_of_them = ZeroWithin(inner=8, **widths)(8)
    assert (all_of_them.optimizer, all_of_them.inner, all_of_them.refresh[0].over) == (8, 1, "all")
    alone = ZeroWithin(inner=1, **widths)(8)
    assert (alone.optimizer, alone.refresh) == (1, ())
    assert ZeroWithin(inner=8, **widths)(1).reduce == ()
    with pytest.raises(ValueError, match="inner: 8 must divide the 12 ranks"):
        ZeroWithin(inner=8, **widths)(12)
    assert ZeroWithin(inner=8, **widths) == ZeroWithin(inner=8, **widths)  # equal plans are equal jobs
