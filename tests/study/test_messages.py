"""The estimate of messages is what messages take, between the two devices of a worker that are furthest apart."""

from __future__ import annotations

from itertools import permutations

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.study.messages import _one_of_each, _seconds, estimate_of
from clustersim.topology.topology import Topology
from clustersim.workload.graph import Graph, GraphOp, graph_step


@pytest.fixture(scope="module")
def dgx1() -> Topology:
    return cs.load_topology("dgx1-v100")


def test_a_message_takes_what_is_estimated(dgx1: Topology) -> None:
    estimate = estimate_of(dgx1, devices=(0, 1))
    net = Graph(
        name="net",
        ops=(
            GraphOp(name="a", seconds=1e-3, out_nbytes=1.6e7, device=0),
            GraphOp(name="b", seconds=1e-3, after=("a",), device=1),
        ),
    )
    job = graph_step(net, batch=1, devices=2, update_nbytes=0)
    step = cs.summary(cs.simulate(dgx1, job))["step_time_s"]
    assert step == pytest.approx(6e-3 + 2 * estimate.transfer(16_000_000), rel=0.01)
    link = 23.25e9  # NVLink 2 as its card has it
    assert 0.5 * link < estimate.bandwidth < link
    assert estimate.gpu is dgx1.gpus[0]


def test_the_slowest_pair_counts() -> None:
    pairs = cs.load_topology("a100-pcie-pairs")  # NVLink between 0 and 1, PCIe from them to 2
    assert estimate_of(pairs, devices=range(3)).bandwidth < 0.5 * estimate_of(pairs, devices=range(2)).bandwidth


def test_a_pair_with_two_links_is_twice_as_fast(dgx1: Topology) -> None:
    one, two = (estimate_of(dgx1, devices=(0, other)).bandwidth for other in (1, 3))
    assert two == pytest.approx(2 * one, rel=0.1)


@pytest.mark.parametrize("name", ["dgx1-v100", "a100-pcie-pairs", "mixed-a100-h100"])
def test_one_pair_of_each_kind_is_enough(name: str) -> None:
    cluster = cs.load_topology(name, nodes=2)
    each = cluster.num_devices // 2
    devices = (0, 1, each // 2, each - 1, each, each + 1)
    pairs = _one_of_each(cluster, devices)
    assert len(pairs) < len(devices) * (len(devices) - 1)
    slowest = max(_seconds(cluster, pair, 2**26) for pair in permutations(devices, 2))
    assert max(_seconds(cluster, pair, 2**26) for pair in pairs) == slowest


@pytest.mark.parametrize("devices", [(0,), (0, 0), ()])
def test_a_worker_has_two_devices_at_least(dgx1: Topology, devices: tuple[int, ...]) -> None:
    with pytest.raises(BadInput, match="at least 2, each once"):
        estimate_of(dgx1, devices=devices)


def test_devices_that_are_not_there(dgx1: Topology) -> None:
    with pytest.raises(BadInput) as caught:
        estimate_of(dgx1, devices=(-1, 8))
    assert [fault.nearest for fault in caught.value.faults] == [0, 7]
