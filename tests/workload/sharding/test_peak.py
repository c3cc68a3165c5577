"""What FSDP holds at most: its shards, the layers that are gathered, the gradients that are not reduced yet.

With L parameters a layer, P in all and N ranks, beside activations ::

    16·P/N + 2·(prefetch + 1)·L + 2·L

with weights and gradients of 2 bytes. There may be two gradients, one computed and one reduced; but gathers and
reductions take turns on one stream, so while a gradient is reduced one layer less is gathered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import clustersim as cs
from clustersim.analysis.memory import memory
from clustersim.analysis.peak import peak
from clustersim.hardware.roofline import roofline

# Layers of 3.1e6 parameters between an embedding and a head of 2.1e6 each; 16 tokens, so that activations are small.
LAYER = 12 * 512**2 + 2 * 512
QUICK = roofline
"""Kernels this small take next to no time under it, so that how many layers are gathered is a matter of rules alone."""
SHORT: dict[str, Any] = {"seq_len": 16, "micro_batches": 1}


def gathered(run: cs.Result) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Bytes of weights that one rank holds beyond its shards, over time."""
    table = memory(run)
    levels = table[table["category"] == "weights"]["nbytes"].to_numpy()
    return levels - run.record.lanes[0].arrays.resident["gpu/weights"]


@pytest.mark.parametrize("prefetch", [0, 1, 2, 3])
@pytest.mark.parametrize("micro_batches", [1, 3])
def test_never_more_groups_than_asked_for(prefetch: int, micro_batches: int, new_step: Callable[..., cs.Job]) -> None:
    """Across micro-batches and steps too; as many are reached, since gathering is quicker than nothing."""
    job = new_step(fsdp=True, prefetch=prefetch, seq_len=16, micro_batches=micro_batches)
    held = gathered(cs.simulate(cs.load_topology("dgx-h100", nodes=2), job, steps=2, cost=QUICK))
    most = (prefetch + 1) * 2 * LAYER
    assert held.min() == 0
    assert held.max() <= most
    assert held.max() > most - 2 * LAYER


def test_without_a_limit_gathers_run_ahead(new_step: Callable[..., cs.Job]) -> None:
    cluster = cs.load_topology("dgx-h100", nodes=2)
    limited, free = (
        gathered(cs.simulate(cluster, new_step(fsdp=True, limit_gathers=limit), cost=QUICK)).max()
        for limit in (True, False)
    )
    assert limited <= 2 * 2 * LAYER < free


@pytest.mark.parametrize("prefetch", [0, 1, 2])
def test_peak(prefetch: int, model: cs.Model, new_step: Callable[..., cs.Job]) -> None:
    job = new_step(fsdp=True, prefetch=prefetch, num_devices=32, **SHORT)
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=4), job)
    most = peak(run.record.lanes[0])["gpu"]
    activations = sum(most.by_category.get(name, 0) for name in ("activations", "workspace"))
    held = 16 * model.num_parameters / 32 + 2 * (prefetch + 1) * LAYER + 2 * LAYER
    assert activations < 0.1 * held
    assert most.nbytes - activations == pytest.approx(held, rel=0.02)


def test_at_most_two_gradients(new_step: Callable[..., cs.Job]) -> None:
    """Also with whole weights, whose gathers do not hold the passes back, and on a slow network."""
    slow = {"slow_links": {f"node0/nic{n}.tx": 0.01 for n in range(8)}}
    layers = 2  # in a bucket
    for plan in ({"fsdp": True}, {"fsdp": True, "reshard": False}, {"zero": 2, "bucket_bytes": 2 * layers * LAYER}):
        run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), new_step(**plan), perturb=slow)
        table = memory(run)
        held = table[table["category"] == "gradients"].groupby("rank")["nbytes"]
        together = layers if "zero" in plan else 1
        assert (held.max() - held.min()).max() <= 2 * 2 * together * LAYER


def test_gathers_wait_for_the_update(new_step: Callable[..., cs.Job]) -> None:
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), new_step(fsdp=True), steps=2)
    trace = run.trace_of([0])
    update = trace[(trace["name"] == "adam") & (trace["step"] == 0)]["end_ns"].item()
    later = trace[(trace["name"] == "all-gather weights") & (trace["step"] == 1)]
    assert later["start_ns"].min() >= update
