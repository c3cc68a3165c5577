"""ZeRO++: what crosses between nodes is a quarter of what ZeRO-3 sends there, and each part can be had alone.

Wang et al., ZeRO++, 2023, table 1: with M bytes of weights, ZeRO-3 sends 3M between nodes, qwZ M/2 + M/2 + M, hpZ
M + 0 + M, qgZ M + M + M/4, all three M/2 + 0 + M/4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import clustersim as cs
from clustersim.workload.sharding import zeropp

VOLUME = {
    (): 3.0,
    ("qwz",): 2.0,
    ("hpz",): 2.0,
    ("qgz",): 2.25,
    ("qwz", "hpz"): 1.5,
    ("qwz", "hpz", "qgz"): 0.75,
}


def between_nodes(run: cs.Result) -> float:
    """Bytes that a node sends through its 8 network ports; both directions of all are alike."""
    (port,) = (rates for rates in run.usage if rates.kind == "nic")
    assert port.multiplicity == 2 * 8 * run.topology.num_nodes
    return 8 * float(np.sum(port.used[:-1] * np.diff(port.time_ns))) / 1e9


@pytest.mark.parametrize("parts", VOLUME, ids=lambda parts: "+".join(parts) or "zero-3")
def test_volume_between_nodes(parts: Sequence[str], model: cs.Model, new_step: Callable[..., cs.Job]) -> None:
    """(nodes - 1)/nodes of it stays inside by all-to-all; a ring sends (N - 1)/N. Scales are 4 in 4,096 bytes."""
    nodes = 4
    job = new_step(zero=3, zeropp=tuple(parts), num_devices=8 * nodes, micro_batches=1)
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=nodes), job, algorithms={"all_gather": "ring"})
    hops = 0.25 * (nodes - 1) / nodes if "qgz" in parts else 31 / 32
    rings = (VOLUME[tuple(parts)] - (0.25 if "qgz" in parts else 1.0)) * 31 / 32
    assert between_nodes(run) == pytest.approx((rings + hops) * 2 * model.num_parameters, rel=0.005)


def test_payloads(model: cs.Model, new_step: Callable[..., cs.Job], payloads: Callable[..., Any]) -> None:
    found = payloads(new_step(zero=3, zeropp=("qwz", "hpz", "qgz"), micro_batches=1))
    int8, int4 = (1 + 4 / 4096) * model.num_parameters, (0.5 + 4 / 4096) * model.num_parameters
    assert found == {
        ("dp", "all_gather"): pytest.approx(int8, rel=1e-5),
        ("dp_inner", "all_gather"): pytest.approx(int8, rel=1e-5),
        ("dp_inner", "all_to_all"): pytest.approx(int4, rel=1e-5),
        ("dp_outer", "all_to_all"): pytest.approx(int4 / 8, rel=1e-5),
    }


def test_the_second_copy_is_held(model: cs.Model, new_step: Callable[..., cs.Job]) -> None:
    def weights(parts: tuple[str, ...]) -> int:
        return new_step(zero=3, zeropp=parts).programs[0].resident["gpu/weights"]

    assert weights(("hpz",)) - weights(("qwz",)) == pytest.approx(2 * model.num_parameters / 8, abs=1)


def test_passes_around_the_collectives() -> None:
    """A rank quantises its shard of 1/16 and dequantises the whole; with hpZ its eighth, for the backward pass."""
    sharding = zeropp(16, inner=8, weight=2, gradient=2)
    int8, int4 = 1 + 4 / 4096, 0.5 + 4 / 4096
    (gather,), (again,) = sharding.gather, sharding.gather_again
    assert gather.before == pytest.approx((2 + int8) / 16)
    assert gather.after == pytest.approx(int8 + 2 + 2 * 2 / 8)
    assert again.before == pytest.approx((2 + int8) / 8)
    assert again.after == pytest.approx(int8 + 2)
    inside, between = sharding.reduce
    assert (inside.before, inside.after) == pytest.approx((2 + int4, int4 + int4 / 8))
    assert (between.before, between.after) == pytest.approx((0, int4 + 2 / 2))


def test_on_one_node_only_gathers_differ() -> None:
    sharding = zeropp(8, inner=8, weight=2, gradient=4)
    assert (sharding.inner, sharding.extra_weights) == (1, 0)
    assert sharding.gather == sharding.gather_again
    assert [move.kind for move in sharding.reduce] == ["reduce_scatter"]


def test_quantising_takes_time_on_the_gpu(new_step: Callable[..., cs.Job]) -> None:
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), new_step(zero=3, zeropp=("qwz",), micro_batches=1))
    passes = run.trace[run.trace["kind"] == "quantise"]
    assert set(passes["name"]) == {"pack weights", "unpack weights"}
    assert (passes["end_ns"] > passes["start_ns"]).all()
