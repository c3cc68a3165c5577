"""Nodes on NVSwitch: two hops between any two GPUs, each limited by its own links."""

import numpy as np


def test_two_hops_at_the_payload_of_all_links(make, names):
    topology = make(1)
    assert names(topology, 2, 5) == ["node0/gpu2/nvlink.up", "node0/gpu5/nvlink.down"]
    up, down = topology.route(np.array([2]), np.array([5]))[0]
    assert topology.resources.capacity[[up, down]].tolist() == [200_000_000_000] * 2  # 10 links of 25 GB/s at 0.8
    assert topology.resources.latency_ns[[up, down]].tolist() == [300, 200]  # the switch is behind the way up
    assert topology.resources.block(int(up)).num_links == 10


def test_flows_share_only_what_a_gpu_sends_or_receives_on(make):
    topology = make(1)
    source, destination = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
    rows = [set(row.tolist()) for row in topology.route(source, destination)]
    assert len(rows[0] & rows[1]) == 1  # both leave GPU 0
    assert len(rows[2] & rows[3]) == 1  # both arrive at GPU 3
    assert not rows[0] & rows[2]


def test_a_device_needs_no_hop_to_itself(make):
    assert make(2).route(np.array([3]), np.array([3])).shape == (1, 0)
