"""Two jobs on one cluster slow each other where they share links, and only there.

A job sits where ``Job.devices`` says; ``simulate`` takes a list of jobs, and the summary has a part for each::

    first = replace(cs.training_step(model, plan, ...), name="first", devices=np.arange(16))
    second = replace(cs.training_step(model, plan, ...), name="second", devices=np.arange(16, 32))
    run = cs.simulate(cluster, [first, second])
    for job in cs.summary(run)["jobs"]:
        print(job["job"], job["step_time_s"])

In the fat tree below, nodes 0 and 1 hang on one leaf switch, 2 and 3 on another, and the uplinks of a leaf carry a
quarter of what its nodes can send.
"""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

import clustersim as cs
from clustersim.engine.engine import Engine

GB, MS = 10**9, 10**6


@pytest.fixture(scope="module")
def two_leaves() -> cs.Topology:
    settings = {"fabric.oversubscription": 4, "fabric.radix": 20}  # 2 nodes of 8 ports below a leaf, 4 ports above
    return cs.load_topology("dgx-h100", nodes=4, fabric="fat_tree", **settings)


def training(name: str, *nodes: int) -> cs.Job:
    """Tensor-parallel within each of two nodes; gradients cross the network at the end of the step."""
    plan = cs.ParallelPlan(tp=8, dp=2, overlap_dp=False)
    job = cs.training_step(cs.load_model("llama-3.1-8b"), plan, global_batch=8, micro_batch=1, seq_len=4096)
    return replace(job, name=name, devices=np.concatenate([8 * node + np.arange(8) for node in nodes]))


def parts(cluster: cs.Topology, *jobs: cs.Job) -> dict[str, tuple[float, float]]:
    """(step time, exposed time of data parallelism) of each job [s]."""
    whole = cs.summary(cs.simulate(cluster, jobs))
    return {
        part["job"]: (part["step_time_s"], part["breakdown_s"]["exposed_comm"]["dp"])
        for part in whole.get("jobs", [whole])
    }


def test_jobs_that_share_uplinks_slow_each_other(two_leaves: cs.Topology) -> None:
    step, reduction = parts(two_leaves, training("first", 0, 2))["first"]
    together = parts(two_leaves, training("first", 0, 2), training("second", 1, 3))
    assert together["first"] == together["second"]
    assert together["first"][1] == pytest.approx(2 * reduction, rel=0.01)
    assert together["first"][0] == pytest.approx(step + reduction, rel=0.01)


def test_jobs_below_different_leaves_do_not(two_leaves: cs.Topology) -> None:
    alone = parts(two_leaves, training("first", 0, 1))["first"]
    assert parts(two_leaves, training("first", 0, 1), training("second", 2, 3)) == {"first": alone, "second": alone}


def dumbbell() -> cs.Topology:
    """Two switches with two GPUs each; everything is 10 GB/s, so the link between the switches is the narrow one."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edge("left", "right", bandwidth="10 GB/s", latency="0 s")
    for name, side in (("a", "left"), ("b", "left"), ("c", "right"), ("d", "right")):
        graph.add_node(name, role="gpu")
        graph.add_edge(name, side, bandwidth="10 GB/s", latency="0 s")
    nx.set_node_attributes(graph, {"left": "switch", "right": "switch"}, "role")
    return cs.Topology.from_networkx(
        graph, gpu=cs.load_part("gpu", "a100-sxm-80gb"), cpu=cs.load_part("cpu", "epyc-7742")
    )


def messages(name: str, sender: int, receiver: int, count: int = 1) -> cs.Job:
    """``count`` times 1 GB, one after the other: 100 ms each when alone."""
    programs = []
    for kind in ("send", "recv"):
        program = cs.Program(kind)
        for k in range(count):
            op = cs.Collective(name=f"{kind} {k}", kind=kind, slot="pair", nbytes=GB, axis="pp")
            program.add(op, stream="network")
        programs.append(program)
    pair = cs.GroupFamily(name="pair", members=np.array([[0, 1]]), slots=("pair",))
    devices = np.array([sender, receiver])
    return cs.Job(name=name, programs=tuple(programs), program_of=np.arange(2), families=(pair,), devices=devices)


def ends_ms(run: cs.Result) -> dict[str, list[int]]:
    """When each job's messages end, to the millisecond."""
    ends = run.trace.groupby("run", observed=True)["end_ns"].unique()
    return {str(name): [round(ns / MS) for ns in of_job] for name, of_job in ends.items()}


@pytest.mark.parametrize("fold", [True, False])
def test_a_shared_link_is_split_evenly_and_freed_at_once(fold: bool) -> None:
    long, short = messages("long", 0, 2, count=2), messages("short", 1, 3)
    assert ends_ms(cs.simulate(dumbbell(), long, fold=fold)) == {"long": [100, 200]}
    together = cs.simulate(dumbbell(), [long, short], fold=fold)
    assert ends_ms(together) == {"long": [200, 300], "short": [200]}


def test_the_two_directions_of_a_link_are_two_links() -> None:
    run = cs.simulate(dumbbell(), [messages("there", 0, 2), messages("back", 3, 1)])
    assert ends_ms(run) == {"there": [100], "back": [100]}


def test_a_job_that_comes_later_shares_what_is_left() -> None:
    def launch(engine: Engine) -> None:
        engine.launch(0)
        engine.launch(1, at=50 * MS)

    run = cs.simulate(dumbbell(), [messages("first", 0, 2), messages("second", 1, 3)], behaviour=launch)
    # half of the first is done when the second starts; then both have half the link until the first ends
    assert ends_ms(run) == {"first": [150], "second": [200]}
