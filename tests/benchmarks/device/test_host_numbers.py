"""Launches and copies of a device of which everything is known."""

from __future__ import annotations

import pytest
from fake_device import FakeDevice
from host_numbers import copies, launches
from stopwatch import Stopwatch


def test_launches_are_told_one_by_one() -> None:
    device = FakeDevice(issue=7e-6)
    found = {number.quantity: number for number in launches(device, Stopwatch(device, device.clock))}
    assert {quantity: (pytest.approx(number.value), number.unit) for quantity, number in found.items()} == {
        "device, from one kernel to the next": (1.0, "us"),
        "device, from one kernel of a graph to the next": (0.5, "us"),
        "host, to issue an op": (7.0, "us"),
        "host, to replay a graph of 256 kernels": (7.0, "us"),
    }


def test_copies_go_all_ways_and_pageable_ones_hold_up_the_host() -> None:
    device = FakeDevice(issue=0.0)
    one = list(copies(device, Stopwatch(device, device.clock)))
    two = list(copies(device, Stopwatch(device, device.clock), num_devices=2))
    assert {number.quantity for number in two} - {number.quantity for number in one} == {"copy, device to device:1"}
    for number in one:
        assert number.value == pytest.approx(10.0 if "pageable" in number.quantity else 20.0)
        assert number.unit == "GB/s"
    assert len({(number.quantity, number.nbytes) for number in one}) == len(one) == 25
