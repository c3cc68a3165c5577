"""Superchips: a CPU of its own behind C2C for each GPU, alone, in a mesh, or in one NVSwitch domain."""

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.cluster import connect
from clustersim.topology.superchip import superchip


def test_each_gpu_has_its_own_cpu(parts):
    links = [[0, 6], [6, 0]]
    node = superchip(superchip=parts.superchip, num_superchips=2, link=parts.nvlink, num_links=links)
    topology = connect(node, None, name="pair")
    rows = topology.local["h2d"].rows
    assert [topology.resources.names(row) for row in rows] == [
        ["node0/cpu0/dram", "node0/gpu0/c2c.down"],
        ["node0/cpu1/dram", "node0/gpu1/c2c.down"],
    ]
    assert topology.tier_bytes["host"] == 2 * 10**12


def test_one_switched_domain_is_one_node(parts, names):
    node = superchip(
        superchip=parts.superchip, num_superchips=72, link=parts.nvlink, num_links=18, switch=parts.nvswitch
    )
    topology = connect(node, None, name="rack")
    assert topology.num_devices == 72
    assert topology.num_nodes == 1
    assert names(topology, 0, 71) == ["node0/gpu0/nvlink.up", "node0/gpu71/nvlink.down"]


def test_a_single_superchip_needs_no_nvlink(parts):
    topology = connect(superchip(superchip=parts.superchip, num_superchips=1), None, name="one")
    assert topology.num_devices == 1
    assert topology.route(np.array([0]), np.array([0])).shape == (1, 0)


@pytest.mark.parametrize(
    "given",
    [
        {"num_superchips": 2},
        {"num_superchips": 2, "num_links": 18},
        {"num_superchips": 1, "num_links": 18},
        {"num_superchips": 3, "num_links": [[0, 1], [1, 0]]},
    ],
)
def test_links_that_do_not_fit_are_refused(parts, given):
    link = {"link": parts.nvlink} if "num_links" in given else {}
    with pytest.raises(BadInput, match="do not join"):
        superchip(superchip=parts.superchip, **given, **link)


def test_far_memory_stays_in_the_tray(parts):
    node = superchip(
        superchip=parts.superchip,
        num_superchips=4,
        link=parts.nvlink,
        num_links=2,
        switch=parts.nvswitch,
        cpu_link=parts.pcie,
        superchips_per_tray=2,
        memory_bytes=10**9,
    )
    far = node.local["dram.far"].rows[:, 0]
    near = node.local["dram"].rows[:, 0]
    assert far.tolist() == near[[1, 0, 3, 2]].tolist()
    assert node.tier_bytes["host"] == 4 * 10**9
