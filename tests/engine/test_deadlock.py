"""When nothing can happen any more, the message says who waits for whom until the cycle closes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from clustersim.engine.deadlock import Deadlock
from clustersim.engine.simulate import simulate
from clustersim.workload.job import Job, Pool

FOLD = pytest.mark.parametrize("fold", [True, False])


def deadlock(star: ModuleType, job: Job | list[Job], **options: Any) -> Deadlock:
    with pytest.raises(Deadlock) as caught:
        simulate(star.cluster(4, 1), job, **options)
    error = caught.value
    assert error.result is not None
    assert error.result.record.status == "deadlock"
    assert all(line in error.result.record.message for line in error.chain)
    return error


@FOLD
def test_a_send_without_its_receive(star: ModuleType, fold: bool) -> None:
    send = star.program(star.gemm(100), star.collective("send", 8, "out"), star.gemm(5, name="after"))
    job = star.job(send, star.program(star.gemm(100)), families=(star.groups(("out", "in"), [0, 1]),))
    error = deadlock(star, job, fold=fold)
    assert error.chain == (
        "rank 0 op 1 'send' (send on out) waits in dp/out/0 for rank 1, whose program has no collective number 0 there",
    )
    assert error.result is not None
    assert star.times(error.result, 0) == {"gemm": (0, 100), "send": (-1, -1), "after": (-1, -1)}


@FOLD
def test_two_ranks_that_each_send_before_they_receive(star: ModuleType, fold: bool) -> None:
    first = star.program(star.collective("send", 8, "a out"), star.collective("recv", 8, "b in"))
    second = star.program(star.collective("send", 8, "b out"), star.collective("recv", 8, "a in"))
    families = (star.groups(("a out", "a in"), [0, 1]), star.groups(("b out", "b in"), [1, 0]))
    error = deadlock(star, star.job(first, second, families=families), fold=fold)
    assert error.chain == (
        "rank 0 op 0 'send' (send on a out) waits in dp/a out/0 for rank 1 op 1 'recv' (recv on a in)",
        "rank 1 op 1 'recv' (recv on a in) waits for rank 1 op 0 'send' (send on b out)",
        "rank 1 op 0 'send' (send on b out) waits in dp/b out/0 for rank 0 op 1 'recv' (recv on b in)",
        "rank 0 op 1 'recv' (recv on b in) waits for rank 0 op 0 'send' (send on a out)",
        "which closes the cycle of 4",
    )


@FOLD
def test_a_ring_of_equal_ranks(star: ModuleType, fold: bool) -> None:
    """Four ranks that send to the right before they receive from the left: one class, and a cycle all the same."""
    p = star.program(star.collective("send", 8, "out"), star.collective("recv", 8, "in"))
    family = star.groups(("out", "in"), [0, 1], [1, 2], [2, 3], [3, 0])
    error = deadlock(star, star.job(p, p, p, p, families=(family,)), fold=fold)
    assert error.chain[-1].startswith("which closes the cycle of")
    assert any("rank 0 op 0 'send'" in line for line in error.chain)


@FOLD
def test_a_pool_that_is_never_given_back(star: ModuleType, fold: bool) -> None:
    p = star.program()
    p.add(star.copy("d2h", 1000, name="first"), stream="copy", takes={"pinned": 1})
    p.add(star.copy("d2h", 1000, name="second"), stream="copy", takes={"pinned": 1})
    error = deadlock(star, star.job(p, pools={"pinned": Pool(capacity=1)}), fold=fold)
    assert error.chain == ("rank 0 op 1 'second' waits for 1 of pinned, 0 of 1 are free, and no op will give any back",)
    assert error.result is not None
    assert star.times(error.result, 0)["first"] == (0, 50)


@FOLD
def test_a_pool_whose_holder_waits_for_the_pool(star: ModuleType, fold: bool) -> None:
    """Two ranks of a node hold one slot each and want a second one before they give back the first."""
    p = star.program()
    p.add(star.copy("d2h", 1000, name="stage"), stream="copy", takes={"slot": 1})
    p.add(star.copy("d2h", 1000, name="swap"), stream="copy", takes={"slot": 1})
    p.add(star.copy("h2d", 1000, name="return"), stream="copy", gives={"slot": 2})
    job = star.job(p, p, pools={"slot": Pool(capacity=2, scope="job")})
    error = deadlock(star, job, fold=fold)
    assert error.chain == (
        "rank 0 op 1 'swap' waits for 1 of slot, 0 of 2 are free, and rank 0 op 2 'return' would give some back",
        "rank 0 op 2 'return' waits for rank 0 op 1 'swap'",
        "which closes the cycle of 2",
    )


def test_a_pool_that_another_rank_holds(star: ModuleType) -> None:
    """Rank 1 waits for the slot that rank 0 gives back only after rank 1 has joined it."""
    holder = star.program()
    taken = holder.add(star.copy("d2h", 1000, name="take"), stream="main", takes={"slot": 1})
    meet = holder.add(star.collective("barrier", 0), stream="main", after=[taken])
    holder.add(star.copy("h2d", 1000, name="give"), stream="main", after=[meet], gives={"slot": 1})
    other = star.program(star.gemm(100))
    other.add(star.copy("d2h", 1000, name="want"), stream="main", takes={"slot": 1})
    other.add(star.collective("barrier", 0), stream="main")
    families = (star.groups("dp", [0, 1]),)
    pools = {"slot": Pool(capacity=1, scope="job")}
    error = deadlock(star, star.job(holder, other, families=families, pools=pools))
    assert error.chain == (
        "rank 0 op 1 'barrier' (barrier on dp) waits in dp/dp/0 for rank 1 op 2 'barrier' (barrier on dp)",
        "rank 1 op 2 'barrier' (barrier on dp) waits for rank 1 op 1 'want'",
        "rank 1 op 1 'want' waits for 1 of slot, 0 of 1 are free, and rank 0 op 2 'give' would give some back",
        "rank 0 op 2 'give' waits for rank 0 op 1 'barrier' (barrier on dp)",
        "which closes the cycle of 4",
    )


def test_a_request_that_is_not_first_in_line(star: ModuleType) -> None:
    """Nobody overtakes: one slot is free, and the op in front wants two."""
    p = star.program(star.delay(5))
    p.add(star.delay(1, name="modest"), stream="main", takes={"slot": 1})
    p.add(star.delay(1, name="keeper"), stream="b", takes={"slot": 1})
    p.add(star.delay(1, name="greedy"), stream="c", takes={"slot": 2})
    error = deadlock(star, star.job(p, pools={"slot": Pool(capacity=2)}))
    assert error.chain == (
        "rank 0 op 1 'modest' waits in the line for slot behind rank 0 op 3 'greedy'",
        "rank 0 op 3 'greedy' waits for 2 of slot, 1 of 2 are free, and no op will give any back",
    )


def test_jobs_are_named(star: ModuleType) -> None:
    send = star.program(star.collective("send", 8, "out"))
    lonely = star.job(
        send, star.program(star.gemm(1)), name="lonely", families=(star.groups(("out", "in"), [0, 1]),), devices=[2, 3]
    )
    error = deadlock(star, [star.job(star.program(star.gemm(1)), name="fine"), lonely])
    assert "rank 0 of lonely op 0 'send'" in error.chain[0]


def test_a_link_that_stays_dead(star: ModuleType) -> None:
    """An op on a link without capacity never ends; the message names the link."""
    ends = (("send", "out"), ("recv", "in"))
    programs = [star.program(star.collective(kind, 10_000, slot)) for kind, slot in ends]
    job = star.job(*programs, families=(star.groups(("out", "in"), [0, 1]),))

    def behaviour(engine: Any) -> None:
        engine.launch(0)
        engine.at(300, lambda engine: engine.set_capacity("nic0.tx", 0))

    error = deadlock(star, job, behaviour=behaviour, varying=["nic0.tx"])
    assert error.chain == (
        "rank 0 op 0 'send' (send on out) has started and never ends: nic0.tx has no bandwidth left for it",
    )
