"""The worked example of an extension: short, from outside, and its numbers are those worked out by hand."""

from __future__ import annotations

import ast
import re
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import clustersim as cs

EXAMPLE = Path(__file__).with_name("own_everything.py")
OWN = SimpleNamespace(**runpy.run_path(str(EXAMPLE)))
LAUNCH_NS, LINK_NS = 2000, 1000  # of the card; of one of the example's links


def step_with(schedule: object, run_on: cs.Topology) -> cs.Result:
    plan = cs.ParallelPlan(tp=2, pp=2, dp=4, schedule=schedule)  # type: ignore[arg-type]
    job = cs.training_step(cs.load_model("gpt2"), plan, global_batch=32, micro_batch=1, seq_len=1024)
    return cs.simulate(run_on, job)


def test_it_is_short_and_stays_outside() -> None:
    source = EXAMPLE.read_text()
    assert len(source.splitlines()) <= 60
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            assert isinstance(node.ctx, ast.Load), f"line {node.lineno} changes an object from outside"
            assert not node.attr.startswith("_"), f"line {node.lineno} uses what is private"
        if isinstance(node, ast.ImportFrom):
            assert not any(part.startswith("_") for alias in node.names for part in (alias.name, str(node.module)))


def test_it_runs_and_prints_a_summary_of_both_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    training, server = capsys.readouterr().out.split("parameter server")
    assert "one_at_a_time" in training
    assert re.search(r"exposed comm .* dp \d", training)
    assert "16 GPUs" in server
    assert re.search(r"ranks +16 ", server)


def test_the_topology_is_the_graph() -> None:
    cluster: cs.Topology = OWN.ring_of_switches(4, 2)
    assert (cluster.num_devices, cluster.num_nodes) == (8, 4)
    ways = cluster.route(np.array([0, 0, 6]), np.array([1, 2, 0]))
    assert [cluster.resources.names(way[way >= 0]) for way in ways] == [
        ["gpu0.0->switch0", "switch0->gpu0.1"],
        ["gpu0.0->switch0", "switch0->switch1", "switch1->gpu1.0"],
        ["gpu3.0->switch3", "switch3->switch0", "switch0->gpu0.0"],  # around the ring the short way
    ]


@pytest.mark.parametrize(("num_members", "rounds"), [(2, 1), (4, 2), (8, 3)])
def test_the_collective_takes_its_rounds(num_members: int, rounds: int) -> None:
    everyone = cs.GroupFamily(name="all", members=np.arange(num_members)[None], slots=("all",))
    sums = cs.Program()
    sums.add(cs.Collective(name="sum", kind="all_reduce", slot="all", nbytes=10**9, axis="dp"), stream="network")
    job = cs.Job(name="sum", programs=(sums,), program_of=np.zeros(num_members, np.int64), families=(everyone,))
    cluster = OWN.ring_of_switches(2, num_members)
    run = cs.simulate(cluster, job, algorithms={"all_reduce": OWN.recursive_doubling})
    # all on one switch: a round is 1 GB at 100 GB/s over two links
    assert run.trace["end_ns"].tolist() == [LAUNCH_NS + rounds * (10_000_000 + 2 * LINK_NS)]
    assert run.inputs["algorithms"] == {"all_reduce": "recursive_doubling"}


def test_the_schedule_has_one_micro_batch_under_way() -> None:
    cluster = OWN.ring_of_switches(4, 4)
    own, gpipe = step_with(OWN.one_at_a_time, cluster), step_with("gpipe", cluster)
    passes = own.trace[own.trace["category"].eq("compute") & own.trace["phase"].isin(["forward", "backward"])]
    busy = passes.sort_values("start_ns")
    assert busy["stage"].nunique() == 2
    other_stage = busy["stage"].to_numpy()[1:] != busy["stage"].to_numpy()[:-1]
    assert (busy["start_ns"].to_numpy()[1:] >= busy["end_ns"].to_numpy()[:-1])[other_stage].all()
    assert other_stage.sum() == 8 * 2  # each of 8 micro-batches comes to the last stage and goes back
    mine, all_at_once = cs.summary(own), cs.summary(gpipe)
    assert mine["peak_memory_bytes"]["gpu"] < all_at_once["peak_memory_bytes"]["gpu"]
    assert mine["bubble_fraction"] > all_at_once["bubble_fraction"]


def test_the_program_does_its_steps_in_order() -> None:
    cluster = OWN.ring_of_switches(4, 4)
    # at full clock: under a power limit workers, which do nothing else, keep a lower one than the server
    full = replace(cluster, gpus=tuple(replace(gpu, power=None) for gpu in cluster.gpus))
    run = cs.simulate(full, OWN.parameter_server(16, nbytes=2**28), steps=2)
    of_server, of_worker = run.trace_of([0]), run.trace_of([15])
    assert of_server["name"].tolist() == ["gradients", "push", "adam", "pull"] * 2
    assert of_worker["name"].tolist() == ["gradients", "push", "pull"] * 2
    assert (of_server["start_ns"].to_numpy()[1:] == of_server["end_ns"].to_numpy()[:-1]).all()
    adam = of_server[of_server["name"] == "adam"].iloc[0]
    pull = of_worker[of_worker["name"] == "pull"].iloc[0]
    assert pull["wait_ns"] == adam["end_ns"] - adam["start_ns"]
    assert cs.summary(run)["breakdown_s"]["optimizer"] == pytest.approx(pull["wait_ns"] / 1e9 / 16)
