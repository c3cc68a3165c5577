"""Rates on shared resources equal an independent solver's on 1,000 random instances, and pass the test of optimality.

The allocation is defined in one line: maximise in the max-min sense x_i/φ_i subject to Σ_i a_ij·x_i ≤ c_j and
0 ≤ x_i ≤ cap_i. `water_fill` solves it from that line, in fractions. `certify` uses no solver at all: an allocation
is max-min fair if and only if each activity is at its cap or has a bottleneck, a full resource on which nobody has a
larger x/φ (Bertsekas and Gallager, *Data Networks*, 2nd ed., 1992, section 6.5.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

import pytest

from clustersim.engine.scene.signature import ONE, Signature, weight
from clustersim.engine.sharing.activity import Activity
from clustersim.engine.sharing.sharing import Sharing

HEAD_ROOM = 1 + Fraction(1, 2**40)
"""What a capacity has more, so that rates rounded up still fit."""

Instance = tuple[list[int], list[Activity]]


def water_fill(room: Sequence[Fraction], flows: Sequence[Activity]) -> list[Fraction]:
    """x_i of each activity, by raising one level for all and stopping who meets a limit first."""
    cap = [Fraction(a.cap * a.signature.peak_load) for a in flows]
    phi = [a.signature.num_flows for a in flows]
    share = [{r: Fraction(load, a.signature.peak_load) for r, load, _ in a.demands} for a in flows]
    x: dict[int, Fraction] = {}
    while len(x) < len(flows):
        rising = [i for i in range(len(flows)) if i not in x]
        left = [c - sum(share[i].get(r, 0) * x[i] for i in x) for r, c in enumerate(room)]
        slope = [sum(share[i].get(r, 0) * phi[i] for i in rising) for r in range(len(room))]
        stop = {i: min([cap[i] / phi[i], *(left[r] / slope[r] for r in share[i])]) for i in rising}
        lowest = min(stop.values())
        x |= {i: lowest * phi[i] for i in rising if stop[i] == lowest}
    return [x[i] for i in range(len(flows))]


def certify(room: Sequence[Fraction], flows: Sequence[Activity]) -> None:
    """Nothing is over its capacity; each is at its cap, or has a bottleneck."""
    used = [sum(load * a.rate for a in flows for at, load, _ in a.demands if at == r) for r in range(len(room))]
    level = {a: Fraction(a.rate * a.signature.peak_load, a.signature.num_flows) for a in flows}
    highest = [
        max((level[a] for a in flows if r in {at for at, _, _ in a.demands}), default=0) for r in range(len(room))
    ]
    slack = 1 + Fraction(1, 2**36)
    assert all(amount <= c for amount, c in zip(used, room, strict=True))
    for a in flows:
        bottlenecks = [r for r, _, _ in a.demands if used[r] * slack >= room[r] and highest[r] <= level[a] * slack]
        assert a.rate == a.cap or bottlenecks
        assert a.rate <= a.cap
        assert a.limit == -1 if a.rate == a.cap else a.limit in bottlenecks


def activity(loads: dict[int, int], ns: int, num_flows: int) -> Activity:
    """An op of ``ns`` alone that puts bytes on resources."""
    peak = max([1, *loads.values()])
    demands = tuple((r, load, weight(load, num_flows, peak)) for r, load in loads.items())
    made = Signature(ns=ns, demands=demands, peak_load=peak, num_flows=num_flows)
    return Activity(None, 0, made, -(-ONE // ns), 0)


# --- instances -------------------------------------------------------------------------------------------------------


def spread(random: Random, low: float, high: float) -> int:
    """A whole number, its logarithm uniform."""
    return round(low * math.exp(random.random() * math.log(high / low)))


def any_incidence(random: Random) -> Instance:
    """Capacities over six orders of magnitude, loads over six, speeds alone from far above the share to far below."""
    num_resources, num_flows = random.randint(1, 7), random.randint(1, 9)
    capacity = [spread(random, 1e6, 1e12) for _ in range(num_resources)]
    flows = []
    for _ in range(num_flows):
        crossed = random.sample(range(num_resources), random.randint(1, num_resources))
        loads = {r: spread(random, 1e3, 1e9) for r in crossed}
        alone = max(load / capacity[r] for r, load in loads.items()) * 1e9
        flows.append(
            activity(loads, max(1, round(alone * 10 ** random.uniform(-2, 2))), random.choice([1, 1, 2, 7, 64]))
        )
    return capacity, flows


def equal_loads(random: Random) -> Instance:
    """Flows of one size over links of few sizes: many ties, as in a real fabric."""
    num_links = random.randint(2, 8)
    capacity = [random.choice([10**9, 10**9, 25 * 10**8, 4 * 10**10]) for _ in range(num_links)]
    nbytes = spread(random, 1e3, 1e9)
    flows = []
    for _ in range(random.randint(1, 10)):
        crossed = random.sample(range(num_links), random.randint(1, min(4, num_links)))
        flows.append(activity(dict.fromkeys(crossed, nbytes), max(1, nbytes * 10**9 // capacity[crossed[0]]), 1))
    return capacity, flows


def all_equal(random: Random) -> Instance:
    """Everything the same: one tie of everybody with everything."""
    num_links, nbytes = random.randint(1, 5), spread(random, 1, 1e9)
    capacity = [spread(random, 1e6, 1e12)] * num_links
    ns, num_flows = spread(random, 1, 1e9), random.choice([1, 3, 8])
    return capacity, [
        activity(dict.fromkeys(range(num_links), nbytes), ns, num_flows) for _ in range(random.randint(1, 9))
    ]


def one_resource(random: Random) -> Instance:
    """The engine has a shorter way for this."""
    capacity = [spread(random, 1e6, 1e12)]
    share = capacity[0] / 1e9
    flows = []
    for _ in range(random.randint(1, 12)):
        load = spread(random, 1e3, 1e9)
        flows.append(
            activity({0: load}, max(1, round(load / share * 10 ** random.uniform(-1, 2))), random.randint(1, 9))
        )
    return capacity, flows


def no_demand(random: Random) -> Instance:
    """Some ops cross nothing, some resources have no user."""
    capacity, flows = any_incidence(random)
    idle = [activity({}, spread(random, 1, 1e9), random.randint(1, 3)) for _ in range(random.randint(1, 3))]
    return [*capacity, 10**9], [*flows[: random.randint(0, 4)], *idle]


def settle(sharing: Sharing) -> None:
    rates: dict[Activity, int] = {}
    sharing.settle(rates)
    for changed, rate in rates.items():
        changed.rate = rate


@pytest.mark.parametrize("draw", [any_incidence, equal_loads, all_equal, one_resource, no_demand])
def test_rates_are_those_of_an_independent_solver(draw: Callable[[Random], Instance]) -> None:
    """200 instances a kind, each come to by ops that start and others that end."""
    for seed in range(200):
        random = Random(seed)
        capacity, flows = draw(random)
        gone = [activity({r: 1000}, 1, 1) for r in range(len(capacity)) if random.random() < 0.5]
        sharing = Sharing(capacity)
        for early in (*gone, *flows[: len(flows) // 2]):
            sharing.add(early)
        settle(sharing)
        for ended in gone:
            sharing.remove(ended)
        for late in flows[len(flows) // 2 :]:
            sharing.add(late)
        settle(sharing)
        room = [Fraction(c * ONE, 10**9) * HEAD_ROOM for c in capacity]
        for a, x in zip(flows, water_fill(room, flows), strict=True):
            assert abs(a.rate * a.signature.peak_load - x) <= a.signature.peak_load + x / 10**12, (draw.__name__, seed)
        certify([c + 1 for c in room], flows)
