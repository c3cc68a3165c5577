"""Repeats on a device of which everything is known."""

from __future__ import annotations

import itertools

import pytest
from fake_device import FakeDevice
from stopwatch import Stopwatch


def test_the_time_is_the_devices_even_where_the_host_is_slower() -> None:
    device = FakeDevice(issue=50e-6, flush_seconds=80e-6)
    kernel = device.kernel(2e-6, launches=20)
    timing = Stopwatch(device, device.clock).on_device(kernel)
    assert timing.seconds == pytest.approx(2e-6)
    device.wait()
    first = device.mark()
    kernel()
    assert device.between(first, device.mark()) > 0.9e-3  # what a mark on an empty stream would have told


def test_caches_are_cold() -> None:
    device = FakeDevice()
    timing = Stopwatch(device, device.clock).on_device(device.kernel(cold=40e-6, warm=10e-6))
    assert timing.seconds == pytest.approx(40e-6)


def test_the_median_of_repeats_without_the_first_counts() -> None:
    device = FakeDevice()
    # Five runs for the host's time, five and two to warm up and for each; then 3 of 5 take 3 us.
    times = itertools.chain([1.0] * 7, [9.0] * 2, [3e-6, 80e-6, 3e-6, 2e-6, 3e-6])
    stopwatch = Stopwatch(device, device.clock, warm_up=2, repeats=5)
    timing = stopwatch.on_device(lambda: device.launch(next(times)))
    assert next(times, None) is None
    assert timing.seconds == pytest.approx(3e-6)
    assert timing.spread == pytest.approx(0.0, abs=1e-6)


def test_the_spread_is_that_of_the_middle_half() -> None:
    device = FakeDevice()
    times = itertools.chain([1.0] * 7, [10e-6, 11e-6, 12e-6, 13e-6, 14e-6])
    timing = Stopwatch(device, device.clock, warm_up=1, repeats=5)
    found = timing.on_device(lambda: device.launch(next(times)))
    assert (found.seconds, found.spread) == (pytest.approx(12e-6), pytest.approx(2 / 12))


def test_the_hosts_time_to_issue_is_not_that_to_finish() -> None:
    device = FakeDevice(issue=5e-6)
    stopwatch = Stopwatch(device, device.clock)
    assert stopwatch.to_issue(device.kernel(1e-3)).seconds == pytest.approx(5e-6)
    assert stopwatch.to_finish(device.kernel(1e-3)).seconds == pytest.approx(1.005e-3)


def test_a_host_that_never_gets_ahead_is_refused() -> None:
    device = FakeDevice(issue=50e-6, flush_seconds=30e-6)
    with pytest.raises(ValueError, match="never gets ahead"):
        Stopwatch(device, device.clock)


@pytest.mark.parametrize("counts", [{"warm_up": 0}, {"repeats": 0}])
def test_there_must_be_runs(counts: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        Stopwatch(FakeDevice(), **counts)
