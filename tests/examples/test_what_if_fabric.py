"""What if the network were another? A question a test, the answer in closed form where there is one.

A cluster is loaded with other values for keys of its card, and a run is compared with a run::

    slim = cs.load_topology("dgx-h100", nodes=8, fabric="fat_tree", **{"fabric.oversubscription": 4})
    run = cs.simulate(slim, step)
    cs.analysis.compare(cs.summary(baseline), cs.summary(run))  # how much
    cs.analysis.bounds(run.trace)  # where
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import clustersim as cs

RINGS = {"all_reduce": "ring", "all_gather": "ring", "reduce_scatter": "ring"}
"""Algorithms pinned, so that what a link carries is known."""


def step_s(run: cs.Result) -> float:
    return float(cs.summary(run)["step_time_s"])


def exposed_s(run: cs.Result, axis: str) -> float:
    return float(cs.summary(run)["breakdown_s"]["exposed_comm"][axis])


def durations(run: cs.Result, axis: str) -> pd.DataFrame:
    """Collectives of one axis [ns]."""
    rows = run.trace[run.trace["group"].str.startswith(f"{axis}/")]
    return rows.assign(ns=rows["end_ns"] - rows["start_ns"])[["name", "micro_batch", "nbytes", "ns"]]


def gradients(run: cs.Result) -> tuple[int, int]:
    """Bytes and duration [ns] of their reduction, which is the same on all ranks."""
    ((nbytes, ns),) = {(int(row[0]), int(row[1])) for row in durations(run, "dp")[["nbytes", "ns"]].to_numpy()}
    return nbytes, ns


def capacity(cluster: cs.Topology, name: str) -> float:
    """Of a resource [B/s]."""
    return float(cluster.resources.capacity[cluster.resources.find(name)])


def links_alone(cluster: cs.Topology) -> cs.Topology:
    """Without what NCCL costs beside the links, for closed forms."""
    return replace(cluster, protocols={})


def training(nodes: tuple[int, ...] = tuple(range(8)), name: str = "llama", **plan: Any) -> cs.Job:
    """Tensor-parallel in a node, a replica a node; gradients are reduced when the backward pass is over."""
    given = cs.ParallelPlan(tp=8, dp=len(nodes), overlap_dp=False, **plan)
    model = cs.load_model("llama-3.1-8b")
    job = cs.training_step(model, given, global_batch=4 * len(nodes), micro_batch=1, seq_len=4096)
    return replace(job, name=name, devices=np.concatenate([8 * node + np.arange(8) for node in nodes]))


# --- over-subscription -----------------------------------------------------------------------------------------------


@cache
def fat_tree(oversubscription: int, nodes: int = 8) -> cs.Topology:
    """Two nodes of eight 400 Gb/s ports below each leaf, with 16 or 4 uplinks."""
    settings = {"fabric.oversubscription": oversubscription, "fabric.radix": {1: 32, 4: 20}[oversubscription]}
    return cs.load_topology("dgx-h100", nodes=nodes, fabric="fat_tree", **settings)


@cache
def over_subscribed(oversubscription: int) -> cs.Result:
    return cs.simulate(fat_tree(oversubscription), training(), algorithms=RINGS)


def test_a_narrower_spine_leaves_what_stays_in_a_node_alone() -> None:
    """Tensor parallelism never leaves its node: not one of its collectives takes a nanosecond more."""
    full, narrow = (durations(over_subscribed(over), "tp") for over in (1, 4))
    assert len(full) > 1000
    pd.testing.assert_frame_equal(full, narrow)


def test_a_narrower_spine_slows_the_gradients_by_the_closed_form() -> None:
    """Eight rings, one a rail, leave each leaf over its uplinks: 8 · 2(n-1)/n · S bytes over a quarter of 16 ports."""
    run, cluster = over_subscribed(4), fat_tree(4)
    nbytes, ns = gradients(run)
    uplinks = capacity(cluster, "leaf0/up")
    assert uplinks * 4 == 16 * capacity(cluster, "node0/nic0.tx")
    assert ns == pytest.approx(8 * 2 * 7 / 8 * nbytes / uplinks * 1e9, abs=2)
    slower = exposed_s(run, "dp") - exposed_s(over_subscribed(1), "dp")
    assert slower > 0
    assert step_s(run) - step_s(over_subscribed(1)) == pytest.approx(slower, abs=1e-8)


def test_below_one_leaf_the_spine_does_not_matter() -> None:
    one, four = (cs.simulate(fat_tree(over), training(nodes=(2, 3)), algorithms=RINGS) for over in (1, 4))
    assert step_s(one) == step_s(four)


def test_a_failed_uplink() -> None:
    """One of four is gone. Gradients, which wait for these links, take 4/3 of the time; nothing else changes."""
    broken = cs.simulate(fat_tree(4), training(), algorithms=RINGS, perturb={"failed_links": ["leaf0/up"]})
    before, after = gradients(over_subscribed(4))[1], gradients(broken)[1]
    assert after == pytest.approx(before * 4 / 3, abs=2)
    assert step_s(broken) - step_s(over_subscribed(4)) == pytest.approx((after - before) / 1e9, abs=1e-8)


def test_a_failed_rail() -> None:
    """The traffic of rail 3 goes over the ports of rail 4; gradients of two ranks of eight wait for two rings."""
    cluster = cs.load_topology("dgx-h100", nodes=4)
    whole = cs.simulate(cluster, training(tuple(range(4))), algorithms=RINGS)
    broken = cs.simulate(cluster, training(tuple(range(4))), algorithms=RINGS, perturb={"failed_links": ["rail3"]})
    nbytes, ns = gradients(whole)
    shared = 2 * 2 * 3 / 4 * nbytes / capacity(cluster, "node0/nic4.tx") * 1e9
    by_class = broken.trace.loc[durations(broken, "dp").index]
    took = by_class["end_ns"] - by_class["start_ns"]
    assert dict(took.groupby(by_class["rank"]).max()) == {0: ns, 3: round(shared), 4: round(shared)}
    assert by_class.set_index("rank")["multiplicity"].tolist() == [24, 4, 4]
    assert step_s(broken) - step_s(whole) == pytest.approx((round(shared) - ns) / 1e9, abs=1e-8)
    assert any("rail3 failed" in warning for warning in broken.warnings)


# --- jobs side by side -----------------------------------------------------------------------------------------------


def communication(run: cs.Result, job: str) -> dict[str, float]:
    """Mean seconds of a job's collectives by what bound them."""
    table = cs.analysis.bounds(run.trace)
    rows = table[(table["run"] == job) & (table["category"] == "communication")]
    return dict(zip(rows["bound"], rows["seconds"], strict=True))


def test_two_jobs_on_a_spine_and_where_they_meet() -> None:
    """Each job has a node below either leaf. The report says by how much they slow each other, and on which link."""
    jobs = training((0, 2), "first"), training((1, 3), "second")
    alone = cs.simulate(fat_tree(4, nodes=4), jobs[0], algorithms=RINGS)
    together = cs.simulate(fat_tree(4, nodes=4), jobs, algorithms=RINGS)
    first, second = cs.summary(together)["jobs"]
    assert first["step_time_s"] == second["step_time_s"]

    change = cs.analysis.compare(cs.summary(alone), first)
    moved = {name: row["delta"] for name, row in change["breakdown_s"].items() if row["delta"]}
    assert list(moved) == ["exposed_comm.dp"]
    assert change["metrics"]["step_time_s"]["delta"] == pytest.approx(moved["exposed_comm.dp"])

    before, after = communication(alone, "first"), communication(together, "first")
    assert {bound for bound in after if after[bound] != pytest.approx(before[bound])} == {"leaf0/up"}
    assert after["leaf0/up"] == pytest.approx(2 * before["leaf0/up"])
    assert after["leaf0/up"] - before["leaf0/up"] == pytest.approx(moved["exposed_comm.dp"])

    usage = cs.analysis.links(together.usage).groupby("kind")["peak_utilisation"].max()
    assert usage["leaf_up"] == pytest.approx(1.0)
    assert usage["nic"] < 0.3


# --- latency ---------------------------------------------------------------------------------------------------------

NUM_NODES = (4, 8, 16, 32, 64)


@cache
def latency_ns(num_nodes: int, algorithm: str | None) -> int:
    """An all-reduce of 1 KiB between a GPU of each node, all below one switch."""
    one_switch = {"fabric": "fat_tree", "fabric.levels": 1}
    cluster = links_alone(cs.load_topology("dgx-h100", nodes=num_nodes, nics_per_node=1, **one_switch))
    op = cs.Collective(name="reduce", kind="all_reduce", slot="dp", nbytes=1024, axis="dp", algorithm=algorithm)
    program = cs.Program("rank")
    program.add(op, stream="network")
    ranks = np.arange(num_nodes)
    group = cs.GroupFamily(name="dp", members=ranks[None], slots=("dp",))
    job = cs.Job(
        name="reduce", programs=(program,), program_of=np.zeros_like(ranks), families=(group,), devices=8 * ranks
    )
    return int(cs.simulate(cluster, job).trace["end_ns"].max())


def test_a_ring_pays_latency_for_every_rank_a_tree_for_every_doubling() -> None:
    """2(n-1) steps against 2·log2(n)."""
    ring, tree = ([latency_ns(n, algorithm) for n in NUM_NODES] for algorithm in ("ring", "tree"))
    each_rank = (ring[-1] - ring[0]) / (NUM_NODES[-1] - NUM_NODES[0])
    assert np.diff(ring) / np.diff(NUM_NODES) == pytest.approx(each_rank, rel=0.01)
    assert np.diff(tree) == pytest.approx((tree[-1] - tree[0]) / 4, rel=0.01)
    assert ring[-1] > 8 * tree[-1]


def test_without_being_told_the_faster_one_is_taken() -> None:
    assert latency_ns(64, None) <= latency_ns(64, "tree") < latency_ns(64, "ring")


# --- switches that add up --------------------------------------------------------------------------------------------


def test_switches_in_the_node_that_add_up() -> None:
    """Sums of tensor parallelism: a ring of eight sends 2·7/8 S over each GPU's links, with NVLink SHARP it is S."""
    job = training((0, 1), sequence_parallel=False, overlap_tp=False)
    with_nvls = cs.load_topology("dgx-h100", nodes=2)
    without = replace(with_nvls, multicast=np.zeros_like(with_nvls.multicast))
    on, off = cs.simulate(with_nvls, job), cs.simulate(without, job)
    fast, slow = (durations(run, "tp") for run in (on, off))
    big = fast["nbytes"] == fast["nbytes"].max()
    assert (fast["ns"] <= slow["ns"]).all()
    assert 1 < (slow["ns"][big] / fast["ns"][big]).mean() < 2 * 7 / 8 + 0.05
    assert gradients(on) == gradients(off)
    assert step_s(off) - step_s(on) == pytest.approx(exposed_s(off, "tp") - exposed_s(on, "tp"), rel=1e-6)


def test_switches_of_the_network_that_add_up() -> None:
    """Gradients of eight replicas: a ring sends 2·7/8 S over each port, with SHARP it is S, nearly half."""
    loaded = (cs.load_topology("dgx-h100", nodes=8, **{"fabric.sharp": on}) for on in (False, True))
    plain, sharp = map(links_alone, loaded)
    ring = cs.simulate(plain, training(), algorithms={"all_reduce": "ring"})
    summed = cs.simulate(sharp, training())
    (nbytes, slow_ns), (_, fast_ns) = gradients(ring), gradients(summed)
    port = capacity(plain, "node0/nic0.tx")
    assert fast_ns == pytest.approx(nbytes / port * 1e9, rel=0.02)
    assert slow_ns == pytest.approx(2 * 7 / 8 * nbytes / port * 1e9, rel=0.05)
    assert step_s(summed) < step_s(ring)


# --- two sites -------------------------------------------------------------------------------------------------------

WINDOW = 4 * 2**20
"""Bytes that one TCP connection has on the way at most: Linux's largest send buffer by default (``tcp_wmem``)."""


@cache
def gpt2_medium(round_trip_s: float, pp: int, library: bool = True) -> cs.Result:
    """A GPU and a 100 Gb/s port at either of two sites; TCP sends one window a round trip at most.

    Input and output embeddings are apart: if they were one matrix, a pipeline would sum its gradients over the WAN.
    """
    settings = {
        "node.num_gpus": 1,
        "fabric.nic": "connectx-5",
        "fabric.wan_latency": round_trip_s / 2,
        "fabric.wan_bandwidth": min(12.5e9, WINDOW / round_trip_s),
    }
    cluster = cs.load_topology("workstation-4090", nodes=2, fabric="two_sites", **settings)
    cluster = cluster if library else links_alone(cluster)
    model = replace(cs.load_model("gpt2-medium"), tied_embeddings=False)
    plan = cs.ParallelPlan(pp=pp, dp=2 // pp)
    return cs.simulate(cluster, cs.training_step(model, plan, global_batch=32, micro_batch=4, seq_len=1024))


def test_far_apart_a_pipeline_beats_data_parallelism() -> None:
    """Rao, "Performance of small language model pretraining on FABRIC", arXiv 2602.02632 (2026): 20 epochs of GPT-2
    between Utah and Amsterdam, 103 ms apart, took 1375 minutes data-parallel and 100 as a pipeline, 13.75 times less.

    Gradients of 4 bytes a parameter cross the WAN once each way; of a pipeline only activations do, 2 bytes for each
    token and hidden unit. The ratio depends on the batch and on the window; neither is told.
    """
    data, pipeline = gpt2_medium(0.103, pp=1), gpt2_medium(0.103, pp=2)
    assert 8 < step_s(data) / step_s(pipeline) < 20
    plain = gpt2_medium(0.103, pp=1, library=False)
    buckets = durations(plain, "dp")[["nbytes", "ns"]].to_numpy(dtype=np.float64)
    nbytes, ns = buckets.sum(axis=0)
    assert ns / 1e9 == pytest.approx(nbytes / (WINDOW / 0.103) + 0.103 * len(buckets), rel=0.01)
    assert set(communication(data, data.record.jobs[0].name)) == {"site0/peer0/wan"}


def test_near_each_other_data_parallelism_wins() -> None:
    assert step_s(gpt2_medium(1e-4, pp=1)) < step_s(gpt2_medium(1e-4, pp=2))


def test_between_near_and_far_there_is_one_crossing() -> None:
    wins = [step_s(gpt2_medium(rtt, pp=1)) < step_s(gpt2_medium(rtt, pp=2)) for rtt in (1e-4, 1e-3, 1e-2, 0.103)]
    assert wins == sorted(wins, reverse=True)
