"""What a run can be told while it runs: launch, cancel, change a capacity, call back, stop."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from simpy.events import Event

from clustersim.engine.engine import Engine
from clustersim.engine.limits import Limits
from clustersim.engine.simulate import simulate
from clustersim.faults import BadInput
from clustersim.topology.topology import Topology
from clustersim.trace.record import LaneRecord
from clustersim.trace.result import Result
from clustersim.workload.job import Job, Pool

FOLD = pytest.mark.parametrize("fold", [True, False])


def message(star: ModuleType, source: int, destination: int, **fields: Any) -> Job:
    """10,000 B from one device to another: 1000 ns over a NIC that has nothing else to do."""
    made: Job = star.job(
        star.program(star.collective("send", 10_000, "out"), star.gemm(300, name="after")),
        star.program(star.collective("recv", 10_000, "in")),
        families=(star.groups(("out", "in"), [0, 1]),),
        devices=[source, destination],
        **fields,
    )
    return made


@pytest.fixture
def cluster(star: ModuleType) -> Topology:
    """Four nodes of one GPU."""
    made: Topology = star.cluster(4, 1)
    return made


def test_launch_at(star: ModuleType, cluster: Topology) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(1)
        engine.launch(0, at=5000)

    jobs = [star.job(star.program(star.gemm(100)), devices=[d]) for d in (0, 1)]
    run = simulate(cluster, jobs, behaviour=behaviour)
    assert star.times(run, 0, job=0) == {"gemm": (5000, 5100)}
    assert star.times(run, 0, job=1) == {"gemm": (0, 100)}
    assert [lane.ready_ns.tolist() for lane in run.record.lanes] == [[5000], [0]]


def test_a_job_that_nobody_launches_does_not_run(star: ModuleType, cluster: Topology) -> None:
    jobs = [star.job(star.program(star.gemm(100)), devices=[d]) for d in (0, 1)]
    run = simulate(cluster, jobs, behaviour=lambda engine: engine.launch(1))
    assert star.times(run, 0, job=0) == {"gemm": (-1, -1)}
    assert run.record.status == "ok"


def test_a_job_cannot_be_launched_twice(star: ModuleType, cluster: Topology) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.launch(0, at=10)

    with pytest.raises(ValueError, match="job 0 has been launched"):
        simulate(cluster, star.job(star.program(star.gemm(100))), behaviour=behaviour)


@FOLD
def test_cancel_frees_what_the_job_used(star: ModuleType, cluster: Topology, fold: bool) -> None:
    """Two messages share a NIC until one job is cancelled at 1000 ns; the other has half left: 500 ns."""

    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.launch(1)
        engine.at(1000, lambda engine: engine.cancel(1))

    jobs = [message(star, 0, 1), message(star, 0, 2)]
    run = simulate(cluster, jobs, behaviour=behaviour, fold=fold)
    assert star.times(run, 0, job=0) == {"send": (0, 1500), "after": (1500, 1800)}
    assert star.times(run, 0, job=1) == {"send": (0, 1000), "after": (-1, -1)}
    assert run.record.status == "ok"


def test_cancel_stops_work_that_shares_nothing_and_requests_for_pools(star: ModuleType, cluster: Topology) -> None:
    p = star.program(star.delay(100, name="first"), star.delay(1000, name="long"), star.delay(1, name="never"))
    p.add(star.copy("d2h", 100, name="blocked"), stream="copy", takes={"empty": 1})
    p.add(star.copy("d2h", 100, name="too late"), stream="copy 2", takes={"empty": 1})

    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.at(500, lambda engine: engine.cancel(0))

    run = simulate(cluster, star.job(p, pools={"empty": Pool(capacity=1)}), behaviour=behaviour)
    assert star.times(run, 0) == {
        "first": (0, 100),
        "long": (100, 500),
        "never": (-1, -1),
        "blocked": (0, 5),
        "too late": (-1, -1),
    }


def test_cancel_before_launch(star: ModuleType, cluster: Topology) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(0, at=1000)
        engine.at(10, lambda engine: engine.cancel(0))

    run = simulate(cluster, star.job(star.program(star.gemm(100))), behaviour=behaviour)
    assert star.times(run, 0) == {"gemm": (-1, -1)}


def throttle(name: str, *changes: tuple[int, int]) -> Any:
    """At each instant [ns] a new capacity [B/s] for a resource."""

    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        for when, capacity in changes:
            engine.at(when, partial(Engine.set_capacity, name=name, capacity=capacity))

    return behaviour


@FOLD
def test_a_link_throttled_in_mid_flight(star: ModuleType, cluster: Topology, fold: bool) -> None:
    """4000 B at 10 B/ns until 400 ns, 2000 B at 2 B/ns until 1400 ns, the other 4000 B at 10 B/ns again."""
    behaviour = throttle("nic0.tx", (400, 2 * 10**9), (1400, 10**10))
    run = simulate(cluster, message(star, 0, 1), behaviour=behaviour, varying=["nic0.tx"], fold=fold)
    assert star.times(run, 0)["send"] == (0, 1800)


@FOLD
def test_a_throttled_link_is_no_other_link(star: ModuleType, cluster: Topology, fold: bool) -> None:
    """Two equal pairs: only the one behind the named NIC is slowed, though nothing told them apart before."""
    send = star.program(star.collective("send", 10_000, "out"))
    receive = star.program(star.collective("recv", 10_000, "in"))
    family = star.groups(("out", "in"), [0, 1], [2, 3])
    job = star.job(send, receive, send, receive, families=(family,))
    behaviour = throttle("nic2.tx", (500, 10**9))
    run = simulate(cluster, job, behaviour=behaviour, varying=["nic2.tx"], fold=fold)
    assert [star.times(run, rank)["send"] for rank in (0, 2)] == [(0, 1000), (0, 5500)]


@FOLD
def test_an_outage(star: ModuleType, cluster: Topology, fold: bool) -> None:
    """A link that carries nothing for a while costs that while."""
    behaviour = throttle("nic0.tx", (300, 0), (7300, 10**10))
    run = simulate(cluster, message(star, 0, 1), behaviour=behaviour, varying=["nic0.tx"], fold=fold)
    assert star.times(run, 0)["send"] == (0, 8000)


@FOLD
def test_a_link_made_faster_leaves_the_others_behind_it_as_they_are(
    star: ModuleType, cluster: Topology, fold: bool
) -> None:
    """Two messages over the same four links: when the first link gets wide, the second still holds them back."""
    jobs = [message(star, 0, 1), message(star, 0, 1)]

    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.launch(1)
        engine.at(500, lambda engine: engine.set_capacity("nic0.tx", 10**11))

    run = simulate(cluster, jobs, behaviour=behaviour, varying=["nic0.tx"], fold=fold)
    assert [star.times(run, 0, job=j)["send"] for j in (0, 1)] == [(0, 2000), (0, 2000)]


def test_names_that_vary_must_exist(star: ModuleType, cluster: Topology) -> None:
    with pytest.raises(BadInput, match=r"nic9\.tx.*nearest: nic3\.tx") as caught:
        simulate(cluster, message(star, 0, 1), varying=["nic9.tx", "nic0.tx", "nick"])
    assert [fault.value for fault in caught.value.faults] == ["nic9.tx", "nick"]


def test_only_declared_resources_can_vary(star: ModuleType, cluster: Topology) -> None:
    with pytest.raises(KeyError, match=r"nic3\.tx"):
        simulate(cluster, message(star, 0, 1), behaviour=throttle("nic3.tx", (5, 10**9)), varying=["nic0.tx"])


def test_callbacks_come_at_their_instant(star: ModuleType, cluster: Topology) -> None:
    seen: list[float] = []

    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        for when in (700, 100, 100):
            engine.at(when, lambda engine: seen.append(engine.env.now))

    simulate(cluster, star.job(star.program(star.gemm(500))), behaviour=behaviour)
    assert seen == [100, 100, 700]


def test_no_callback_in_the_past(star: ModuleType, cluster: Topology) -> None:
    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.at(400, lambda engine: engine.at(399, lambda _: None))

    with pytest.raises(ValueError, match="399 ns is past"):
        simulate(cluster, star.job(star.program(star.gemm(500))), behaviour=behaviour)


def test_a_generator_on_the_clock(star: ModuleType, cluster: Topology) -> None:
    """A link that halves every 500 ns and comes back: 7.5 B/ns on average."""

    def flapping(engine: Engine) -> Generator[Event, Any, None]:
        for _ in range(4):
            for capacity in (5 * 10**9, 10**10):
                yield engine.env.timeout(500)
                engine.set_capacity("nic0.tx", capacity)

    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.env.process(flapping(engine))

    run = simulate(cluster, message(star, 0, 1), behaviour=behaviour, varying=["nic0.tx"])
    # 5000 + 2500 + 2500 B
    assert star.times(run, 0)["send"] == (0, 1250)


# --- stopping --------------------------------------------------------------------------------------------------------


def long_job(star: ModuleType) -> Job:
    """Ten kernels of 100 ns."""
    made: Job = star.job(star.program(*[star.gemm(100, name=f"k{k}") for k in range(10)]))
    return made


def messages(star: ModuleType, number: int) -> Job:
    """Messages one after the other: an instant each, as they end for two ranks."""
    programs = [
        star.program(*[star.collective(kind, 1000 + k, slot) for k in range(number)])
        for kind, slot in (("send", "out"), ("recv", "in"))
    ]
    made: Job = star.job(*programs, families=(star.groups(("out", "in"), [0, 1]),))
    return made


def ends(run: Result) -> list[int]:
    lane: LaneRecord = run.record.lanes[0]
    return [int(end) for end in lane.end_ns]


@pytest.mark.parametrize("limits", [{"simulated_s": 450e-9}, Limits(simulated_s=450e-9)])
def test_limit_of_simulated_time(star: ModuleType, cluster: Topology, limits: Any) -> None:
    run = simulate(cluster, long_job(star), limits=limits)
    assert run.record.status == "limit"
    assert "simulated_s" in run.record.message
    assert ends(run) == [100, 200, 300, 400, *[-1] * 6]
    assert run.record.lanes[0].start_ns.tolist() == [0, 100, 200, 300, 400, *[-1] * 5]


def test_what_ends_with_the_limit_has_ended(star: ModuleType, cluster: Topology) -> None:
    """Two messages on one NIC end at 2000 ns; so a limit of 2000 ns stops nothing, and one of 1999 ns does."""
    jobs = [message(star, 0, 1), message(star, 0, 2)]
    run = simulate(cluster, jobs, limits={"simulated_s": 2000e-9})
    assert [star.times(run, 0, job=j)["send"] for j in (0, 1)] == [(0, 2000)] * 2
    assert run.record.status == "limit"  # the kernels after them have not run
    run = simulate(cluster, jobs, limits={"simulated_s": 1999e-9})
    assert [star.times(run, 0, job=j)["send"] for j in (0, 1)] == [(0, -1)] * 2


def test_limit_of_events(star: ModuleType, cluster: Topology) -> None:
    run = simulate(cluster, messages(star, 10), limits={"num_events": 3})
    assert run.record.status == "limit"
    assert "num_events" in run.record.message
    assert run.record.num_events == 3
    assert sum(end >= 0 for end in ends(run)) < 10


def test_limit_of_real_time(star: ModuleType, cluster: Topology) -> None:
    run = simulate(cluster, messages(star, 600), limits={"wall_s": 0.0})
    assert run.record.status == "limit"
    assert "wall_s" in run.record.message


@pytest.mark.parametrize("limits", [{"simulated_s": 1e-6}, {"simulated_s": 1}, {"num_events": 10**6}, {"wall_s": 3600}])
def test_limits_that_are_not_reached_change_nothing(star: ModuleType, cluster: Topology, limits: Any) -> None:
    run = simulate(cluster, long_job(star), limits=limits)
    assert run.record.status == "ok"
    assert ends(run) == [100 * (k + 1) for k in range(10)]


@FOLD
def test_an_interrupted_run_keeps_what_it_has(star: ModuleType, cluster: Topology, fold: bool) -> None:
    """Ctrl-C at 650 ns, in the middle of a message."""

    def interrupt(engine: Engine) -> None:
        raise KeyboardInterrupt

    def behaviour(engine: Engine) -> None:
        engine.launch(0)
        engine.at(650, interrupt)

    programs = [
        star.program(star.gemm(100), star.collective(kind, 10_000, slot), star.gemm(50, name="never"))
        for kind, slot in (("send", "out"), ("recv", "in"))
    ]
    job = star.job(*programs, families=(star.groups(("out", "in"), [0, 1]),))
    run = simulate(cluster, job, behaviour=behaviour, fold=fold)
    assert run.record.status == "interrupted"
    assert "6.5e-07 s" in run.record.message
    assert star.times(run, 0) == {"gemm": (0, 100), "send": (100, -1), "never": (-1, -1)}
    assert run.trace["end_ns"].max() == 100
    assert sum(rates.used.max() for rates in run.usage if rates.kind == "nic") == 0  # nothing has been delivered yet


# --- several jobs ----------------------------------------------------------------------------------------------------


@FOLD
def test_jobs_that_share_a_link_slow_each_other(star: ModuleType, cluster: Topology, fold: bool) -> None:
    run = simulate(cluster, [message(star, 0, 1), message(star, 0, 2)], fold=fold)
    assert [star.times(run, 0, job=j)["send"] for j in (0, 1)] == [(0, 2000), (0, 2000)]


@FOLD
def test_jobs_apart_do_not(star: ModuleType, cluster: Topology, fold: bool) -> None:
    run = simulate(cluster, [message(star, 0, 1), message(star, 2, 3)], fold=fold)
    assert [star.times(run, 0, job=j)["send"] for j in (0, 1)] == [(0, 1000), (0, 1000)]


def moved(run: Result, kind: str) -> dict[str, float]:
    """Bytes over each resource of a kind, by name [B]."""
    return {
        rates.name: float(np.sum(rates.used[:-1] * np.diff(rates.time_ns)) / 1e9)
        for rates in run.usage
        if rates.kind == kind
    }


@FOLD
def test_a_cancelled_message_has_moved_what_it_moved(star: ModuleType, cluster: Topology, fold: bool) -> None:
    """Half of its bytes had gone when it stopped; beside it a copy on the clock alone, cut after 300 of its 500 ns."""

    def behaviour(engine: Engine) -> None:
        for job in range(3):
            engine.launch(job)
        engine.at(300, lambda engine: engine.cancel(2))
        engine.at(1000, lambda engine: engine.cancel(1))

    copy = star.job(star.program(star.copy("d2h", 10_000)), devices=[3])
    jobs = [message(star, 0, 1), message(star, 0, 2), copy]
    run = simulate(cluster, jobs, behaviour=behaviour, fold=fold)
    assert moved(run, "nic") == pytest.approx({"nic0.tx": 15_000, "nic1.rx": 10_000, "nic2.rx": 5_000})
    assert moved(run, "pcie") == pytest.approx({"pcie3.down": 6_000})
