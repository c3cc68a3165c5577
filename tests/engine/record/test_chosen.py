"""Which collectives ran, how and why."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import clustersim as cs


@cache
def run(nodes: int, tp: int, fold: bool = True, algorithm: str | None = None) -> cs.Result:
    cluster = cs.load_topology("dgx-h100", nodes=nodes)
    plan = cs.ParallelPlan(tp=tp, dp=8 * nodes // tp)
    job = cs.training_step(cs.load_model("gpt2"), plan, global_batch=64, micro_batch=1, seq_len=128)
    return cs.simulate(cluster, job, fold=fold, algorithms={"all_reduce": algorithm} if algorithm else None)


def test_every_collective_of_the_trace_has_its_row() -> None:
    result = run(2, 4)
    ran = result.trace[result.trace["category"] == "communication"]
    family = ran["group"].str.rsplit("/", n=1).str[0]
    found = set(zip(family, ran["kind"], ran["nbytes"], strict=True))
    table = result.collectives
    assert set(zip(table["axis"] + "/" + table["family"], table["kind"], table["nbytes"], strict=True)) == found
    for row in table.itertuples():
        mine = ran[(family == f"{row.axis}/{row.family}") & (ran["kind"] == row.kind) & (ran["nbytes"] == row.nbytes)]
        assert mine.groupby("rank").size().max() == row.num_per_step
        assert row.latency_s <= row.alone_s <= (mine["end_ns"] - mine["start_ns"]).min() / 1e9


def test_groups_members_and_nodes() -> None:
    table = run(2, 4).collectives
    assert set(
        table.loc[table["axis"] == "tp", ["num_groups", "num_members", "num_nodes"]].itertuples(index=False)
    ) == {(4, 4, 1)}
    assert set(
        table.loc[table["axis"] == "dp", ["num_groups", "num_members", "num_nodes"]].itertuples(index=False)
    ) == {(4, 4, 2)}


def test_folded_or_not_it_is_the_same_table() -> None:
    assert run(2, 4).collectives.equals(run(2, 4, fold=False).collectives)


def test_bytes_on_the_busiest_link_are_what_a_ring_puts_there() -> None:
    result = run(1, 4, algorithm="ring")
    rows = result.collectives.query("kind == 'all_reduce' and axis == 'tp'")
    assert len(rows)
    for row in rows.itertuples():
        assert row.algorithm == "ring"
        assert row.busiest_link == "node0/gpu0/nvlink.up"
        assert row.busiest_link_nbytes == pytest.approx(2 * 3 / 4 * row.nbytes, abs=64)


def test_the_choice_and_its_reason_follow_what_is_pinned() -> None:
    free, pinned = run(1, 4).collectives, run(1, 4, algorithm="tree").collectives
    assert set(pinned.loc[pinned["kind"] == "all_reduce", "algorithm"]) == {"tree"}
    mine = free[free["kind"] == "all_reduce"]
    assert mine.loc[mine["axis"] == "tp", "reason"].str.startswith("fastest of ").all()
    assert not pinned.loc[pinned["kind"] == "all_reduce", "reason"].str.startswith("fastest of ").any()
    changed = cs.analysis.changed_collectives(free, pinned)
    assert set(changed["kind"]) == {"all_reduce"}
    assert changed["candidate"].str.startswith("tree").all()
    assert changed["baseline"].tolist() == [f"{r.algorithm}/{r.protocol}" for r in mine.itertuples()]


def test_a_run_without_collectives() -> None:
    program = cs.Program("work")
    program.add(cs.Delay(name="op", kind="delay", measured_ns=10), stream="compute")
    job = cs.Job(name="small", programs=(program,), program_of=np.zeros(1, np.int64), plan={"tp": 1})
    assert cs.simulate(cs.load_topology("dgx-h100"), job).collectives.empty
