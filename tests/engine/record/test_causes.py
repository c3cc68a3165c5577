"""Who waits for a pool is released by who gives back to it, and both are named."""

from __future__ import annotations

from types import ModuleType

import pytest

import clustersim as cs
from clustersim.trace.result import Result
from clustersim.workload.job import Pool

FOLD = pytest.mark.parametrize("fold", [True, False])


def told(run: Result) -> dict[tuple[int, str], tuple[str, str, int]]:
    """(rank, op) -> the pool that it waited for, the op that released it, how long it waited [ns]."""
    trace = run.trace
    by = dict(zip(trace.index, trace["name"], strict=True)) | {-1: "launch"}
    return {
        (row.rank, row.name): (row.pool, by[row.cause], row.wait_ns)
        for row in trace[["rank", "name", "pool", "cause", "wait_ns"]].itertuples(index=False, name="Row")
    }


def path(run: Result) -> list[str]:
    return list(cs.analysis.critical_path(run.trace)["name"])


def apart(star: ModuleType, *ops: tuple[str, int, int, dict[str, int]]) -> cs.Program:
    """Each op (name, ready [ns], how long [ns], takes and gives back) on a stream of its own."""
    p: cs.Program = star.program()
    for name, ready, ns, takes in ops:
        before = [p.add(star.delay(ready, name=f"before {name}"), stream=name)] if ready else []
        p.add(star.delay(ns, name=name), stream=name, after=before, takes=takes, gives=takes)
    return p


@FOLD
def test_a_copy_that_waits_for_a_buffer(star: ModuleType, fold: bool) -> None:
    """Two buffers, emptied by a thread that takes 100 ns each: the third copy waits for the first to be emptied."""
    p = star.program()
    for k in range(3):
        down = p.add(star.copy("d2h", 400, name=f"down {k}"), stream="copy", takes={"pinned": 1})  # 20 ns
        p.add(star.delay(100, name=f"empty {k}"), stream="thread", after=[down], gives={"pinned": 1})
    run = cs.simulate(star.cluster(1, 1), star.job(p, pools={"pinned": Pool(capacity=2)}), fold=fold)
    seen = told(run)
    assert [seen[0, f"down {k}"] for k in range(3)] == [
        ("", "launch", 0),
        ("", "down 0", 0),
        ("pinned", "empty 0", 80),
    ]
    assert path(run) == ["down 0", "empty 0", "empty 1", "empty 2"]
    assert cs.summary(run)["pool_wait_s"] == {"pinned": 0.0}  # the thread works meanwhile


@FOLD
def test_back_pressure_on_the_critical_path(star: ModuleType, fold: bool) -> None:
    """One buffer that a drive empties: kernels wait for copies, copies for the drive."""
    p = star.program()
    for k in range(2):
        kernel = p.add(star.gemm(50, name=f"kernel {k}"), stream="main")
        down = p.add(star.copy("d2h", 400, name=f"down {k}"), stream="main", after=[kernel], takes={"pinned": 1})
        p.add(star.drive("nvme_write", 400, name=f"write {k}"), stream="drive", after=[down], gives={"pinned": 1})
    run = cs.simulate(star.cluster(1, 1), star.job(p, pools={"pinned": Pool(capacity=1)}), fold=fold)
    assert told(run)[0, "down 1"] == ("pinned", "write 0", 150)  # 120 to 270: written at 2 B/ns from 70 on
    assert path(run) == ["kernel 0", "down 0", "write 0", "down 1", "write 1"]
    rows = cs.analysis.critical_path(run.trace)
    assert rows["gap_ns"].tolist() == [0] * 5


@FOLD
def test_in_the_line_of_one_pool_behind_who_waits_for_another(star: ModuleType, fold: bool) -> None:
    p = apart(star, ("holds", 0, 100, {"a": 1}), ("both", 1, 50, {"a": 1, "b": 1}), ("behind", 2, 10, {"b": 1}))
    run = cs.simulate(star.cluster(1, 1), star.job(p, pools={"a": Pool(capacity=1), "b": Pool(capacity=2)}), fold=fold)
    seen = told(run)
    assert seen[0, "both"] == ("a", "holds", 99)
    assert seen[0, "behind"] == ("b", "holds", 98)  # which moved the line


@FOLD
def test_ranks_of_a_node_wait_for_each_other(star: ModuleType, fold: bool) -> None:
    p = star.program()
    p.add(star.delay(100, name="locked"), stream="main", takes={"lock": 1}, gives={"lock": 1})
    job = star.job(p, p, p, p, pools={"lock": Pool(capacity=1, scope="node")})
    run = cs.simulate(star.cluster(2, 2), job, fold=fold)
    trace = run.trace.set_index("rank")
    assert trace["pool"][1] == "lock"
    assert run.trace["rank"][trace["cause"][1]] == 0
    assert trace["cause"][0] == -1
    said = cs.summary(run)
    assert said["pool_wait_s"] == {"lock": pytest.approx(50e-9)}  # a mean over ranks, half of which wait 100 ns
    assert said["breakdown_s"]["wait"] == pytest.approx(50e-9)
    assert "waits for lock" in str(said)


@FOLD
def test_a_collective_whose_last_member_waits_for_a_pool(star: ModuleType, fold: bool) -> None:
    """Rank 0 gets its buffer at 300 ns, rank 1 is ready at 10 ns: both are released by what gave the buffer back."""
    programs = []
    for held in (300, 10):
        p = star.program()
        p.add(star.delay(held, name="holds"), stream="host", takes={"pinned": 1}, gives={"pinned": 1})
        p.add(star.delay(1, name="first"), stream="main")
        op = star.collective("all_reduce", 1000)
        p.add(op, stream="main", takes={"pinned": 1}, gives={"pinned": 1})
        programs.append(p)
    job = star.job(*programs, families=(star.groups("dp", [0, 1]),), pools={"pinned": Pool(capacity=1)})
    seen = told(cs.simulate(star.cluster(1, 2), job, fold=fold))
    assert seen[0, "all_reduce"] == ("pinned", "holds", 299)
    assert seen[1, "all_reduce"] == ("", "holds", 299)  # had its own at 10 ns and then waited for rank 0


def test_the_last_to_give_back_releases_who_wants_all(star: ModuleType) -> None:
    p = apart(star, ("short", 0, 40, {"a": 1}), ("long", 0, 100, {"a": 1}), ("wants all", 1, 50, {"a": 2}))
    job = star.job(p, pools={"a": Pool(capacity=2)})
    assert told(cs.simulate(star.cluster(1, 1), job))[0, "wants all"] == ("a", "long", 99)
