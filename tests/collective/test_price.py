"""What one collective takes alone, and why it runs as it does."""

import pytest

import clustersim as cs
from clustersim.collective.price import price
from clustersim.collective.select import PROTOCOLS
from clustersim.faults import BadInput

TWO = cs.load_topology("dgx-a100", nodes=2)
SIXTEEN = cs.load_topology("dgx-a100", nodes=16)


def test_the_fastest_runs_and_the_reason_has_the_times():
    small, large = price(SIXTEEN, range(128), "all_reduce", [8, 1 << 33])
    assert (small.traffic.algorithm, large.traffic.algorithm) == ("tree", "ring")
    for one in (small, large):
        assert one.reason.startswith(f"fastest of {one.traffic.algorithm}/{one.protocol} {one.ns / 1e3:.4g} us")
    pinned = [price(SIXTEEN, range(128), "all_reduce", [1 << 33], algorithm=f"ring/{way}")[0].ns for way in PROTOCOLS]
    assert large.ns == min(pinned)


def test_a_pinned_protocol_is_taken_by_whatever_has_it():
    (one,) = price(TWO, range(16), "all_reduce", [1 << 33], protocol="LL")
    assert one.protocol == "LL"
    assert one.ns > price(TWO, range(16), "all_reduce", [1 << 33])[0].ns
    with pytest.raises(BadInput, match="LL128") as caught:
        price(TWO, range(16), "all_to_all", [8], protocol="LL128")
    assert caught.value.faults[0].nearest in ("LL", "Simple")


@pytest.mark.parametrize(
    ("card", "num_gpus", "runs"),
    [
        ("h100-pcie-pairs", 2, True),
        ("h100-pcie-pairs", 4, False),
        ("workstation-4090", 2, False),
        ("gh200-quad", 4, True),
    ],
)
def test_ll128_needs_nvlink_between_all_gpus_of_a_node(card, num_gpus, runs):
    """A bridged pair has it, two pairs that PCIe joins do not, unless the user asks for it."""
    topology = cs.load_topology(card)
    taken = price(topology, range(num_gpus), "all_reduce", [1 << k for k in range(10, 24)], algorithm="ring")
    assert any(one.protocol == "LL128" for one in taken) == runs
    (pinned,) = price(topology, range(num_gpus), "all_reduce", [1 << 20], algorithm="ring/LL128")
    assert pinned.protocol == "LL128"


def test_time_grows_with_the_payload():
    times = [one.ns for one in price(TWO, range(16), "all_reduce", [1 << k for k in range(34)])]
    assert times == sorted(times)


def test_one_device_takes_its_launch():
    (one,) = price(TWO, [3], "all_reduce", [1 << 30])
    assert len(one.rows) == 0
    assert one.ns == one.latency_ns == round(TWO.gpus[0].launch_latency * 1e9)


def test_what_is_no_group_is_refused_all_at_once():
    with pytest.raises(BadInput) as caught:
        price(TWO, [0, 1, 1, 16, -1], "all_reduce", [8])
    assert [(f.value, f.nearest) for f in caught.value.faults] == [(16, 15), (-1, 0), (1, None)]
    with pytest.raises(BadInput, match="at least one device"):
        price(TWO, [], "all_reduce", [8])


def test_what_a_message_takes_beside_its_bytes_grows_with_those_beside_it():
    """A message alone has no pipeline to fill: its latency, and its bytes on the links."""
    beside = []
    for kind, ranks in (("send_recv", 2), ("all_to_all", 2), ("all_to_all", 8)):
        (one,) = price(TWO, range(ranks), kind, [1 << 26], protocol="Simple")
        way = next(way for way in TWO.protocols[one.traffic.algorithm] if way.name == "Simple")
        on_links = float((one.loads / TWO.resources.capacity[one.rows]).max()) / way.inside_fraction
        own = one.traffic.own_nbytes / way.copy_bandwidth
        beside.append(one.ns - one.latency_ns - 1e9 * (on_links + own))
    assert beside[0] == pytest.approx(0, abs=1)
    assert 1000 < beside[1] < beside[2]
