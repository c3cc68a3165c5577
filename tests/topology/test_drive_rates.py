"""Rates of drives and file systems as a node reaches them."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.topology.drive_rates import DriveRates, drive_rates


def test_a_node_of_jlse() -> None:
    found = drive_rates(cs.load_topology("jlse-h100"))
    assert found["nvme"] == DriveRates(read=pytest.approx(6.9e9), write=pytest.approx(5.3e9), half_duplex=True)
    assert found["file_system"] == DriveRates(read=pytest.approx(3.6e9), write=pytest.approx(3.6e9), half_duplex=False)
    assert found["nvme"].per_byte == pytest.approx(1 / 6.9e9 + 1 / 5.3e9)
    assert found["file_system"].per_byte == pytest.approx(1 / 3.6e9)


def test_servers_are_shared_by_all_nodes() -> None:
    """40 GB/s of servers over 20 nodes are less than the 3.6 GB/s that one reaches."""
    few, many = (drive_rates(cs.load_topology("jlse-h100", nodes=n))["file_system"].read for n in (2, 20))
    assert few == pytest.approx(3.6e9)
    assert many == pytest.approx(2e9)


def test_a_node_without_drives_has_none() -> None:
    assert drive_rates(cs.load_topology("dgx1-v100")) == {}
