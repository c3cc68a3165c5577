"""Any strategy of data parallelism runs folded as it runs in full, and moves what its movements add up to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.op import Collective
from clustersim.workload.precision import RECIPES
from clustersim.workload.sharding.strategy import strategy

MODEL = cs.Model(
    name="small",
    num_layers=4,
    hidden=256,
    num_heads=8,
    num_kv_heads=8,
    head_dim=32,
    ffn_hidden=1024,
    gated_mlp=False,
    vocab=1000,
    max_seq_len=128,
    norm="layernorm",
    positions="rope",
    tied_embeddings=False,
)
RANKS = 16


@st.composite
def plans(draw: st.DrawFn) -> dict[str, Any]:
    """Words on data parallelism that go together; tp and pp leave 4 replicas at least."""
    plan: dict[str, Any] = {
        "tp": draw(st.sampled_from([1, 2])),
        "pp": draw(st.sampled_from([1, 2])),
        "gradient_dtype": draw(st.sampled_from(["bf16", "fp32"])),
        "reduce_dtype": draw(st.sampled_from([None, "bf16"])),
        "prefetch": draw(st.integers(0, 3)),
        "limit_gathers": draw(st.booleans()),
        "gather_blocks": draw(st.booleans()),
        "reduce_scatter": draw(st.booleans()),
        "per_parameter": draw(st.booleans()),
        "axis_order": draw(st.sampled_from([("tp", "cp", "dp", "pp"), ("dp", "tp", "cp", "pp")])),
    }
    kind = draw(st.sampled_from(["zero", "hsdp", "zeropp", "sync"]))
    if kind == "zero":
        plan |= {"zero": draw(st.integers(0, 3)), "reduce_each": draw(st.sampled_from([None, True, False]))}
        plan |= {"bucket_bytes": draw(st.sampled_from([None, 10**6]))}
    elif kind == "hsdp":
        plan |= {"fsdp": True, "hsdp": draw(st.sampled_from([1, 2, 4]))}
    elif kind == "zeropp":
        plan |= {"zero": 3, "zeropp_ranks": draw(st.sampled_from([2, 4]))}
        plan |= {"zeropp": tuple(draw(st.sets(st.sampled_from(["qwz", "hpz", "qgz"]), min_size=1)))}
    else:
        plan |= {"zero": draw(st.integers(0, 3)), "sync_every": draw(st.integers(1, 3))}
        plan |= {"sync_ranks": draw(st.sampled_from([1, 2, 4])), "sync_momentum": draw(st.booleans())}
    if plan["pp"] == 1 and kind in ("zero", "hsdp"):
        plan["reshard"] = draw(st.booleans())
    return plan


def step(plan: dict[str, Any], micro_batches: int) -> cs.Job:
    replicas = RANKS // plan["tp"] // plan["pp"]
    batch: dict[str, Any] = {"global_batch": replicas * micro_batches, "micro_batch": 1, "seq_len": 128}
    return cs.training_step(MODEL, cs.ParallelPlan(**plan), num_devices=RANKS, **batch)


def unsplit(tp: int) -> int:
    """Parameters on a rank where data parallelism splits nothing; bf16."""
    return step({"tp": tp, "pp": 1}, 1).programs[0].resident["gpu/weights"] // 2


LAW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25)


@LAW
@given(plan=plans(), micro_batches=st.integers(1, 3), per_node=st.sampled_from([4, 8]))
def test_folded_is_full(plan: dict[str, Any], micro_batches: int, per_node: int, times_of: Any) -> None:
    topology = cs.load_topology("dgx-h100" if per_node == 8 else "gh200-quad", nodes=RANKS // per_node)
    job = step(plan, micro_batches)
    full = cs.simulate(topology, job, fold=False, steps=2)
    folded = cs.simulate(topology, job, steps=2)
    assert all(times_of(folded, 0, rank) == times_of(full, 0, rank) for rank in range(RANKS))
    assert cs.summary(folded)["peak_memory_bytes"] == cs.summary(full)["peak_memory_bytes"]


@LAW
@given(plan=plans(), micro_batches=st.integers(1, 3))
def test_programs_move_what_the_strategy_says(plan: dict[str, Any], micro_batches: int) -> None:
    """Movements times parameters times how often each is made, but for the padding and rounding up of each op."""
    plan = plan | {"pp": 1}
    job = step(plan, micro_batches)
    ranks = RANKS // plan["tp"]
    sharding = strategy(cs.ParallelPlan(**plan), RECIPES["bf16"])(ranks)
    arrays = job.programs[0].arrays()
    found: Counter[tuple[str, str]] = Counter()
    count: Counter[tuple[str, str]] = Counter()
    for number in arrays.op.tolist():
        op = arrays.ops[number]
        if isinstance(op, Collective) and op.axis == "dp":
            found[op.slot, op.kind] += op.nbytes
            count[op.slot, op.kind] += 1

    parameters = unsplit(plan["tp"])
    steps, each = sharding.sync_every, micro_batches if sharding.each_micro_batch else 1
    expected: Counter[tuple[str, str]] = Counter()
    for moves, times in (
        (sharding.gather, micro_batches * steps),
        (sharding.gather_again, micro_batches * steps),
        (sharding.reduce, each * steps),
        (sharding.refresh, steps),
        (sharding.exchange, 1),
    ):
        for move in moves:
            slot = "dp" if move.over == "all" else f"dp_{move.over}"
            expected[slot, move.kind] += times * round(move.nbytes * parameters / move.share)
    assert set(found) == set(expected)
    for key, nbytes in expected.items():
        assert abs(found[key] - nbytes) <= 8 * ranks * (count[key] + 1)


@LAW
@given(plan=plans(), micro_batches=st.integers(1, 2))
def test_what_is_taken_is_given_back(plan: dict[str, Any], micro_batches: int) -> None:
    """Nothing is left of a step, and nothing is ever given back before it was taken."""
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), step(plan, micro_batches))
    for lane in run.record.lanes:
        changes = lane.arrays.memory
        assert np.bincount(changes[:, 2], weights=changes[:, 3]).tolist() == [0] * len(lane.arrays.memory_keys)
