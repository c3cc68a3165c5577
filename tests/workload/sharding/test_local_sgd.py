"""Local SGD and DiLoCo: steps without reductions between workers, then one exchange."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import clustersim as cs
from clustersim.workload.sharding import local_sgd, zero


@pytest.mark.parametrize("every", [1, 3])
def test_volume_of_single_ranks(
    every: int, model: cs.Model, new_step: Callable[..., cs.Job], payloads: Callable[..., Any]
) -> None:
    """Workers of one rank reduce nothing; all weights go once, however many steps there are."""
    assert payloads(new_step(sync_every=every)) == {("dp", "all_reduce"): 4 * model.num_parameters}
    assert payloads(new_step(sync_every=every, sync_dtype="bf16")) == {("dp", "all_reduce"): 2 * model.num_parameters}


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_volume_of_workers(
    stage: int, model: cs.Model, new_step: Callable[..., cs.Job], payloads: Callable[..., Any]
) -> None:
    """Inside a worker of 8 each of 3 steps is that of the stage; between the two, each rank exchanges its share."""
    found = payloads(new_step(sync_every=3, sync_ranks=8, zero=stage))
    alone = payloads(new_step(num_devices=8, zero=stage))
    inside = {(f"{slot}_inner", kind): 3 * nbytes for (slot, kind), nbytes in alone.items()}
    share = 1 if stage == 0 else 8
    assert found == inside | {("dp_outer", "all_reduce"): 4 * model.num_parameters // share}


@pytest.mark.parametrize(("momentum", "kept"), [(True, 8), (False, 0)])
def test_memory(momentum: bool, kept: int, model: cs.Model, new_step: Callable[..., cs.Job]) -> None:
    """fp32 momentum, and the weights of the last exchange."""
    plain = new_step(num_devices=8, zero=1).programs[0].resident
    held = new_step(sync_every=2, sync_ranks=8, zero=1, sync_momentum=momentum).programs[0].resident
    extra = sum(held.values()) - sum(plain.values())
    assert extra == pytest.approx(kept * model.num_parameters / 8, abs=8)


def test_the_steps_follow_one_another(new_step: Callable[..., cs.Job]) -> None:
    """Each step's update comes after its passes and before the next one's; the exchange after the last."""
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), new_step(sync_every=3, sync_ranks=8, zero=3))
    trace = run.trace_of([0])
    updates = trace[trace["name"] == "adam"]
    assert len(updates) == 3
    exchange = trace[(trace["kind"] == "all_reduce")].iloc[0]
    assert exchange["start_ns"] >= updates["end_ns"].max()
    gathers = trace[trace["name"] == "all-gather weights"]
    for update in updates.itertuples():
        assert not ((gathers["start_ns"] < update.end_ns) & (gathers["end_ns"] > update.start_ns)).any()


def test_one_step_of_the_result_counts_all_its_tokens(new_step: Callable[..., cs.Job]) -> None:
    one, many = new_step(), new_step(sync_every=5)
    assert many.ledger.tokens == 5 * one.ledger.tokens
    assert many.ledger.model_flops == 5 * one.ledger.model_flops
    assert any("one step of the result is 5 optimizer steps" in note for note in many.notes)


def test_the_next_round_waits_for_the_exchange(new_step: Callable[..., cs.Job]) -> None:
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), new_step(sync_every=2), steps=2)
    trace = run.trace_of([0])
    first, second = (trace[trace["step"] == step] for step in (0, 1))
    assert second["start_ns"].min() >= first[first["kind"] == "all_reduce"]["end_ns"].max()


def test_passes_of_the_outer_step() -> None:
    """Difference: weights and anchor read, difference written; update: that and momentum, anchor, weights."""
    inside = partial(zero, stage=1, weight=2, gradient=4)
    sharding = local_sgd(16, inside=inside, worker=8, every=10, master=4, weight=2)
    (move,) = sharding.exchange
    assert (move.before, move.after, move.share) == (4 + 4 + 4, 4 + 16 + 6, 8)
    averaged = local_sgd(16, inside=inside, worker=8, every=10, master=4, weight=2, exchanged=2, momentum=False)
    (move,) = averaged.exchange
    assert (move.nbytes, move.before, move.after) == (2, 4 + 2, 2 + 6)


def test_one_worker_exchanges_nothing() -> None:
    inside = partial(zero, stage=3, weight=2, gradient=4)
    assert local_sgd(8, inside=inside, worker=8, every=10, master=4, weight=2) == inside(8)
