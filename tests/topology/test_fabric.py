"""Ports: which NIC a GPU sends through."""

import numpy as np
import pytest

from clustersim.faults import BadInput
from clustersim.topology.fabric import Ports


@pytest.mark.parametrize(
    ("nics", "of_gpu", "num_links"),
    [
        (8, (0, 1, 2, 3, 4, 5, 6, 7), 1),
        (4, (0, 0, 1, 1, 2, 2, 3, 3), 1),
        (1, (0,) * 8, 1),
        (32, (0, 1, 2, 3, 4, 5, 6, 7), 4),
    ],
)
def test_nics_are_shared_or_bundled(parts, nics, of_gpu, num_links):
    ports = Ports.spread(nic=parts.nic, nics_per_node=nics, num_gpus=8)
    assert (ports.of_gpu, ports.num_links) == (of_gpu, num_links)


def test_a_bundle_carries_the_sum(make):
    topology = make(2, nics_per_node=16)
    row = topology.resources.find("node1/nic7.tx")
    assert topology.resources.capacity[row] == 90_000_000_000  # two of 50 GB/s at 0.9
    assert topology.resources.block(row).num_links == 2


def test_sharers_meet_on_their_nic(make):
    topology = make(2, nics_per_node=4)
    rows = topology.route(np.array([0, 1, 2]), np.array([8, 9, 10]))
    assert rows[0, 1] == rows[1, 1] != rows[2, 1]


def test_affinity_may_be_given(parts):
    ports = Ports.spread(nic=parts.nic, nics_per_node=2, num_gpus=4, nic_of=(1, 0, 1, 0))
    assert ports.of_gpu == (1, 0, 1, 0)
    for wrong in ((0, 1), (0, 0, 0, 0), (0, 1, 2, 1)):
        with pytest.raises(BadInput, match=r"fabric\.nic_of"):
            Ports.spread(nic=parts.nic, nics_per_node=2, num_gpus=4, nic_of=wrong)


@pytest.mark.parametrize(("nics", "nearest"), [(0, 1), (3, 2), (7, 8), (12, 8), (15, 16)])
def test_numbers_that_do_not_divide_name_the_nearest_that_do(parts, nics, nearest):
    with pytest.raises(BadInput) as error:
        Ports.spread(nic=parts.nic, nics_per_node=nics, num_gpus=8)
    assert error.value.faults[0].nearest == nearest
