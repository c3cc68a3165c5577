"""Rates of activities on shared resources, against answers known in closed form and against what makes them optimal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.engine.scene.signature import ONE, Signature, weight
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.sharing.sharing import Sharing
from clustersim.engine.simulate import simulate

GB = 10**9  # a capacity of 1 GB/s is 1 byte a nanosecond


def speed(ns: int) -> int:
    """Work a nanosecond of what takes ``ns`` alone."""
    return -(-ONE // ns)


def flow(loads: dict[int, int], ns: int = 1, num_flows: int = 1) -> Activity:
    """Something that puts bytes on resources and takes ``ns`` when nothing holds it back."""
    peak = max(loads.values())
    demands = tuple((resource, load, weight(load, num_flows, peak)) for resource, load in loads.items())
    signature = Signature(ns=ns, demands=demands, peak_load=peak, num_flows=num_flows)
    return Activity(None, 0, signature, speed(ns), 0)


def settle(sharing: Sharing) -> None:
    rates: dict[Activity, int] = {}
    sharing.settle(rates)
    for activity, rate in rates.items():
        activity.rate = rate


def shared(capacity: Sequence[int], flows: Iterable[Activity]) -> Sharing:
    """``flows`` on resources of ``capacity`` [B/s], their rates decided."""
    sharing = Sharing(capacity)
    for activity in flows:
        sharing.add(activity)
    settle(sharing)
    return sharing


def nanoseconds(activity: Activity) -> float:
    """How long it takes at its rate [ns]."""
    return ONE / activity.rate


def test_alone_an_activity_runs_at_its_own_speed() -> None:
    alone = flow({0: 1000}, ns=1000)
    shared([GB], [alone])
    assert alone.rate == speed(1000)


def test_two_equal_flows_on_a_link_take_twice_as_long() -> None:
    two = [flow({0: 1000}, ns=1000) for _ in range(2)]
    shared([GB], two)
    assert [-(-ONE // a.rate) for a in two] == [2000, 2000]
    assert {a.limit for a in two} == {0}


@pytest.mark.parametrize("num_flows", [2, 3, 7, 48])
def test_flows_through_an_over_subscribed_spine(num_flows: int) -> None:
    """k NICs of 1 GB/s behind an uplink of 2 GB/s: each flow gets 2/k of its NIC."""
    flows = [flow({0: 1000, 1 + k: 1000}, ns=1000) for k in range(num_flows)]
    shared([2 * GB] + [GB] * num_flows, flows)
    assert [-(-ONE // a.rate) for a in flows] == [max(1000, 500 * num_flows)] * num_flows


def test_the_parking_lot() -> None:
    """One flow over three links of 12 GB/s; beside it one on the first, two on the second, none on the third.

    The second link is the tightest: 4 GB/s each. What is left of the first goes to its other flow: 8 GB/s. The example
    of Bertsekas and Gallager, *Data Networks*, 2nd ed., section 6.5.2, with one flow moved.
    """
    long, first = flow({0: 12, 1: 12, 2: 12}), flow({0: 12})
    second = [flow({1: 12}), flow({1: 12})]
    shared([12 * GB] * 3, [long, first, *second])
    assert nanoseconds(long) == pytest.approx(3)
    assert nanoseconds(first) == pytest.approx(1.5)
    assert [nanoseconds(a) for a in second] == pytest.approx([3, 3])


def test_weights() -> None:
    """An all-to-all of three flows a link gets three times the bytes of a single flow beside it."""
    three, one = flow({0: 900}, ns=900, num_flows=3), flow({0: 300}, ns=300)
    shared([GB], [three, one])
    assert nanoseconds(three) == pytest.approx(1200)
    assert nanoseconds(one) == pytest.approx(1200)


def test_what_a_capped_flow_leaves_goes_to_the_others() -> None:
    """10 GB/s: one flow can take only 2 of them, the other two get 4 each."""
    slow, fast = flow({0: 1000}, ns=500), [flow({0: 1000}, ns=100) for _ in range(2)]
    shared([10 * GB], [slow, *fast])
    assert slow.rate == speed(500)
    assert slow.limit == -1
    assert [nanoseconds(a) for a in fast] == pytest.approx([250, 250])


def test_a_light_load_beside_a_heavy_one() -> None:
    """Rates are equal in bytes on each one's own busiest resource, not on the resource they meet on."""
    heavy, light = flow({0: 1000, 1: 100}, ns=100), flow({1: 100}, ns=100)
    shared([100 * GB, GB], [heavy, light])
    # level x: x/10 + x = 1 B/ns on resource 1
    assert nanoseconds(heavy) == pytest.approx(1000 * 1.1)
    assert nanoseconds(light) == pytest.approx(100 * 1.1)


def test_flows_that_fit_keep_their_speed_when_others_are_shared_out() -> None:
    """A full link of odd numbers: 10000 of the 60000 B are on it, so its weight is a fraction that must not cost."""
    flows = [flow({0: 10_000, 1: 60_000}, ns=1000) for _ in range(3)]
    tight = [flow({1: 60_000}, ns=1000), flow({1: 60_000}, ns=1000)]
    sharing = shared([30 * GB, 240 * GB], [*flows, *tight])
    assert [a.rate for a in flows] == [pytest.approx(speed(1250), rel=1e-9)] * 3
    sharing.remove(tight.pop())
    settle(sharing)
    assert [a.rate for a in (*flows, *tight)] == [speed(1000)] * 4


def test_add_and_remove_restore() -> None:
    first, second = flow({0: 1000, 1: 500}, ns=1000), flow({1: 1000}, ns=1000)
    sharing = shared([GB, GB], [first])
    before = first.rate, list(sharing.used)
    sharing.add(second)
    settle(sharing)
    assert first.rate < before[0]
    sharing.remove(second)
    settle(sharing)
    assert (first.rate, list(sharing.used)) == before


def test_capacity_can_change() -> None:
    only = flow({0: 1000}, ns=1000)
    sharing = shared([GB], [only])
    for capacity, expected in ((GB // 4, 4000), (2 * GB, 1000), (GB // 2, 2000)):
        sharing.set_capacity(0, capacity)
        settle(sharing)
        assert nanoseconds(only) == pytest.approx(expected)


# --- what holds for every allocation -------------------------------------------------------------------------------

RESOURCES = st.integers(0, 4)
LOADS = st.dictionaries(RESOURCES, st.sampled_from([1, 2, 3, 999, 1000, 10**6, 123_456_789]), min_size=1, max_size=4)
FLOWS = st.builds(flow, LOADS, st.sampled_from([1, 7, 1000, 10**6, 10**9]), st.sampled_from([1, 1, 2, 7]))
CAPACITIES = st.lists(st.sampled_from([1000, GB, 10 * GB, 123_456_789_012]), min_size=5, max_size=5)


def level(a: Activity) -> Fraction:
    """Bytes on its busiest resource, for each of its flows."""
    return Fraction(a.rate * a.signature.peak_load, a.signature.num_flows)


def certify(sharing: Sharing, capacity: Sequence[int], flows: Sequence[Activity]) -> None:
    """Within capacities; each at its own speed, or on a full resource where nobody has a higher level."""
    used = [sum(load * a.rate for a in flows for r, load, _ in a.demands if r == resource) for resource in range(5)]
    room = [Fraction(c * ONE, GB) for c in capacity]
    for resource in range(5):
        assert used[resource] <= room[resource] * (1 + Fraction(1, 2**39)) + 1
        assert sharing.used[resource] == used[resource]
    for a in flows:
        assert 0 < a.rate <= a.cap
        if a.rate < a.cap:
            full = [r for r, _, _ in a.demands if used[r] >= room[r]]
            highest = {r: max(level(b) for b in flows if r in [s for s, _, _ in b.demands]) for r in full}
            assert a.limit in full
            assert highest[a.limit] <= level(a) * (1 + Fraction(1, 2**30))
        else:
            assert a.limit == -1


@given(capacity=CAPACITIES, flows=st.lists(FLOWS, min_size=1, max_size=8))
def test_every_allocation_is_max_min(capacity: list[int], flows: list[Activity]) -> None:
    certify(shared(capacity, flows), capacity, flows)


CHANGES = st.one_of(
    st.tuples(st.just("add"), FLOWS),
    st.tuples(st.just("remove"), st.integers(0, 99)),
    st.tuples(st.just("capacity"), RESOURCES, st.sampled_from([1000, GB // 3, GB, 7 * GB])),
    st.tuples(st.just("recap"), st.integers(0, 99), st.sampled_from([1, 10, 5000, 10**7])),
)


@settings(max_examples=200)
@given(capacity=CAPACITIES, instants=st.lists(st.lists(CHANGES, min_size=1, max_size=4), max_size=6))
def test_the_way_there_does_not_matter(capacity: list[int], instants: list[list[tuple[Any, ...]]]) -> None:
    """After any changes the rates are those of the same activities put together afresh."""
    sharing, present = Sharing(capacity), []
    for changes in instants:
        rates: dict[Activity, int] = {}
        recaps = []
        for what, *change in changes:
            if what == "add":
                twin = change[0]  # the same drawn object may come twice
                made = Activity(None, 0, twin.signature, twin.cap, 0)
                present.append(made)
                sharing.add(made)
            elif what == "remove" and present:
                sharing.remove(present.pop(change[0] % len(present)))
            elif what == "capacity":
                capacity[change[0]] = change[1]
                sharing.set_capacity(*change)
            elif what == "recap" and present:
                recaps.append((present[change[0] % len(present)], speed(change[1])))
        for activity, cap in recaps:  # the engine recaps last
            if activity in present:
                sharing.recap(activity, cap, rates)
        sharing.settle(rates)
        for activity, rate in rates.items():
            activity.rate = rate
        afresh = [Activity(None, 0, a.signature, a.cap, 0) for a in present]
        shared(capacity, afresh)
        assert [a.rate for a in present] == [a.rate for a in afresh]
        certify(sharing, capacity, present)


# --- the same in a run ---------------------------------------------------------------------------------------------


def test_a_drive_reads_or_writes(star: ModuleType) -> None:
    """4 GB/s reading, 2 GB/s writing, one at a time. 4000 B and 2000 B take 1000 ns alone and 2000 ns together.

    Side by side both move x B/ns with x/4 + x/2 = 1, so the write ends after 1500 ns; the read has half left.
    """
    p = star.program(star.drive("nvme_read", 4000), stream="read")
    p.add(star.drive("nvme_write", 2000), stream="write")
    run = simulate(star.cluster(1, 1), star.job(p))
    assert star.times(run, 0) == {"nvme_write": (0, 1500), "nvme_read": (0, 2000)}


def test_a_collective_takes_sms_from_a_kernel_bound_by_them(star: ModuleType) -> None:
    """24 of 100 SMs: a GEMM runs at 76 % while the all-reduce runs, a kernel bound by HBM is not slowed.

    400,000 B over NVLink take 4000 ns. 3040 of the GEMM's 4000 ns are done by then, 960 are left.
    """
    programs = []
    for op in (star.gemm(4000), star.sweep(4000)):
        p = star.program(op)
        p.add(star.collective("all_reduce", 400_000), stream="dp")
        programs.append(p)
    cluster = star.cluster(1, 2)
    wide = cluster.with_capacity({"hbm0": 100, "hbm1": 100})
    run = simulate(wide, star.job(*programs, families=(star.groups("dp", [0, 1]),)))
    assert star.times(run, 0) == {"gemm": (0, 4960), "all_reduce": (0, 4000)}
    assert star.times(run, 1) == {"sweep": (0, 4000), "all_reduce": (0, 4000)}


def test_a_collective_takes_memory_bandwidth_from_a_sweep(star: ModuleType) -> None:
    """An all-reduce of S over two GPUs moves 4 S through each HBM: S = 100,000 at 100 B/ns asks for 400 of 1000 B/ns.

    So a sweep at all of the HBM's rate runs at 60 % for 1000 ns; 1400 of its 2000 ns are left.
    """
    p = star.program(star.sweep(2000))
    p.add(star.collective("all_reduce", 100_000), stream="dp")
    run = simulate(star.cluster(1, 2), star.job(p, p, families=(star.groups("dp", [0, 1]),)))
    assert star.times(run, 0) == {"sweep": (0, 2400), "all_reduce": (0, 1000)}


def test_the_optimizer_on_the_host_and_a_copy_share_dram(star: ModuleType) -> None:
    """DRAM of 100 B/ns: Adam alone takes all of it, a copy 20. The copy keeps its 20, Adam gets 80."""
    p = star.program(star.host(80_000))
    p.add(star.copy("d2h", 20_000), stream="copy")
    run = simulate(star.cluster(1, 1), star.job(p))
    assert star.times(run, 0) == {"adam": (0, 1000), "d2h": (0, 1000)}
