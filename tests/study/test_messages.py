"""The estimate of messages is what messages take, between the two devices of a worker that are furthest apart."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.study.messages import estimate_of
from clustersim.topology.topology import Topology
from clustersim.workload.graph import Graph, GraphOp, graph_step


@pytest.fixture(scope="module")
def dgx1() -> Topology:
    return cs.load_topology("dgx1-v100")


def test_a_message_takes_what_is_estimated(dgx1: Topology) -> None:
    estimate = estimate_of(dgx1, devices=2)
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
    assert estimate_of(pairs, devices=3).bandwidth < 0.5 * estimate_of(pairs, devices=2).bandwidth


@pytest.mark.parametrize("devices", [1, 9])
def test_two_ends_at_least_and_no_more_than_there_are(dgx1: Topology, devices: int) -> None:
    with pytest.raises(BadInput) as caught:
        estimate_of(dgx1, devices=devices)
    assert caught.value.faults[0].nearest == min(max(devices, 2), 8)
