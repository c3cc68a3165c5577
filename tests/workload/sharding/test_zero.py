"""ZeRO's closed forms: memory of its three stages, and what each stage sends.

Rajbhandari et al., ZeRO, 2020, section 5 and figure 1: with P parameters, N ranks and Adam in mixed precision, a rank
holds 2P + 2P + 12P, 4P + 12P/N, 2P + 14P/N and 16P/N bytes. Section 7: stages 1 and 2 send as much as data
parallelism, stage 3 half as much again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.sharding import ddp, zero

STATE = {
    0: lambda p, n: 16 * p,
    1: lambda p, n: 4 * p + 12 * p / n,
    2: lambda p, n: 2 * p + 14 * p / n,
    3: lambda p, n: 16 * p / n,
}


@pytest.mark.parametrize("num_devices", [1, 2, 8, 32])
@pytest.mark.parametrize("stage", STATE)
def test_memory(stage: int, num_devices: int, model: cs.Model, new_step: Callable[..., cs.Job]) -> None:
    job = new_step(zero=stage, num_devices=num_devices)
    resident = job.programs[0].resident
    assert set(resident) == {"gpu/weights", "gpu/gradients", "gpu/optimizer"}
    assert sum(resident.values()) == pytest.approx(STATE[stage](model.num_parameters, num_devices), abs=16)


@pytest.mark.parametrize("micro_batches", [1, 3])
def test_volume(
    micro_batches: int, model: cs.Model, new_step: Callable[..., cs.Job], payloads: Callable[..., Any]
) -> None:
    """Payloads of whole buffers: an all-reduce sends twice its payload, the others once, all times (N-1)/N."""
    nbytes = 2 * model.num_parameters

    def moved(stage: int, **plan: Any) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = payloads(new_step(zero=stage, micro_batches=micro_batches, **plan))
        return found

    scattered, gathered = ("dp", "reduce_scatter"), ("dp", "all_gather")
    assert moved(0) == {("dp", "all_reduce"): nbytes}
    assert moved(1) == {scattered: nbytes, gathered: nbytes}
    assert moved(2) == {scattered: micro_batches * nbytes, gathered: nbytes}
    assert moved(3) == {scattered: micro_batches * nbytes, gathered: 2 * micro_batches * nbytes}
    assert moved(3, reshard=False) == {scattered: micro_batches * nbytes, gathered: micro_batches * nbytes}
    assert moved(3, reduce_each=False) == {scattered: nbytes, gathered: 2 * micro_batches * nbytes}
    assert moved(0, reduce_each=True) == {("dp", "all_reduce"): micro_batches * nbytes}
    assert moved(1, reduce_each=True) == {scattered: micro_batches * nbytes, gathered: nbytes}


def test_formats_of_their_own(model: cs.Model, new_step: Callable[..., cs.Job], payloads: Callable[..., Any]) -> None:
    found = payloads(new_step(zero=3, micro_batches=1, reduce_dtype="fp32", gather_dtype="fp32"))
    parameters = model.num_parameters
    assert found == {("dp", "reduce_scatter"): 4 * parameters, ("dp", "all_gather"): 2 * 4 * parameters}


def test_a_cast_is_a_pass_before_and_after_the_reduction() -> None:
    (move,) = zero(8, stage=2, weight=2, gradient=4, reduced=2).reduce
    assert (move.nbytes, move.before, move.after) == (2, 4 + 2, (4 + 2) / 8)
    (move,) = zero(8, stage=2, weight=2, gradient=4).reduce
    assert (move.nbytes, move.before, move.after) == (4, 0, 0)
    (move,) = ddp(8, gradient=4, reduced=2).reduce
    assert (move.nbytes, move.before, move.after) == (2, 6, 6)


def test_one_rank_shares_nothing(new_step: Callable[..., cs.Job], payloads: Callable[..., Any]) -> None:
    for stage in STATE:
        sharding = zero(1, stage=stage, weight=2, gradient=2)
        assert (sharding.name, sharding.weights, sharding.optimizer) == ("none", 1, 1)
        assert payloads(new_step(zero=stage, num_devices=1)) == {}


def test_whole_gradients_where_they_are_reduced_once(model: cs.Model, new_step: Callable[..., cs.Job]) -> None:
    job = new_step(zero=3, reduce_each=False)
    assert job.programs[0].resident["gpu/gradients"] == 2 * model.num_parameters
    assert job.programs[0].resident["gpu/weights"] == pytest.approx(2 * model.num_parameters / 16, abs=2)
