"""What can be changed about a cluster: slow links, failed links, other cards."""

from dataclasses import replace

import numpy as np
import pytest

from clustersim.faults import BadInput


class TestSlowLinks:
    def test_a_factor_scales_one_resource(self, make):
        topology = make(2)
        slow = topology.with_capacity({"node1/nic0.tx": 0.5})
        row = topology.resources.find("node1/nic0.tx")
        assert slow.resources.capacity[row] * 2 == topology.resources.capacity[row]
        changed = np.flatnonzero(slow.resources.capacity != topology.resources.capacity)
        assert changed.tolist() == [row]

    def test_bad_names_and_factors_are_refused(self, make):
        with pytest.raises(KeyError):
            make(1).with_capacity({"node9/nic0.tx": 0.5})
        for factor in (0, -1, float("inf"), float("nan")):
            with pytest.raises(ValueError, match="must be positive"):
                make(1).with_capacity({"node0/nic0.tx": factor})

    def test_nothing_to_change_is_the_same_topology(self, make):
        topology = make(1)
        assert topology.with_capacity({}) is topology
        assert topology.without_links([]) is topology


class TestFailedLinks:
    def test_a_bundle_loses_its_share(self, make):
        topology = make(1)
        name = "node0/gpu3/nvlink.up"  # ten links
        row = topology.resources.find(name)
        before = topology.resources.capacity[row]
        assert topology.without_links([name]).resources.capacity[row] == before * 9 // 10
        assert topology.without_links([name] * 4).resources.capacity[row] == before * 6 // 10

    def test_the_last_link_cannot_fail(self, make):
        with pytest.raises(BadInput, match="no route: 1 of 1") as error:
            make(2).without_links(["node0/gpu0/pcie.up"])
        assert error.value.faults[0].nearest == "slow_links of node0/gpu0/pcie.up"
        with pytest.raises(BadInput, match="no route: 10 of 10"):
            make(1).without_links(["node0/gpu3/nvlink.up"] * 10)

    def test_every_fault_is_named_with_the_nearest_resource(self, make):
        with pytest.raises(BadInput) as error:
            make(2).without_links(["node0/nic9.tx", "node5/nic1.tx", "node0/gpu7/hbm"])
        assert [fault.nearest for fault in error.value.faults] == [
            "node0/nic7.tx",
            "node1/nic1.tx",
            "slow_links of node0/gpu7/hbm",
        ]


class TestMixedCards:
    def test_some_slots_hold_other_cards(self, make, parts):
        topology = make(2)
        slower = replace(parts.gpu, name="slower", memory_bandwidth=1e12)
        mixed = topology.with_devices({3: slower, 12: slower})
        assert [gpu.name for gpu in mixed.gpus] == ["gpu", "slower"]
        assert np.flatnonzero(mixed.gpu_of).tolist() == [3, 12]
        capacity = mixed.resources.capacity
        assert capacity[mixed.resources.find("node1/gpu4/hbm")] == 10**12
        assert capacity[mixed.resources.find("node1/gpu5/hbm")] == 2 * 10**12
        assert (topology.gpu_of == 0).all()

    def test_a_device_that_is_none_is_refused(self, make, parts):
        with pytest.raises(BadInput) as error:
            make(1).with_devices({8: parts.gpu, -1: parts.gpu})
        assert [fault.nearest for fault in error.value.faults] == [7, 0]
