"""Epochs over the global batch: on the table's points, between them, and never beyond them."""

from __future__ import annotations

import pytest

from clustersim.faults import BadInput
from clustersim.workload.convergence import Convergence

TABLE = Convergence(samples=1000, batches=(64, 256, 1024), epochs=(4, 6, 16))


def test_between_points_it_is_linear_in_the_logarithm() -> None:
    assert [TABLE.epochs_at(b) for b in TABLE.batches] == [4, 6, 16]
    assert TABLE.epochs_at(128) == pytest.approx(5)
    assert TABLE.epochs_at(512) == pytest.approx(11)


@pytest.mark.parametrize(("batch", "nearest"), [(63, 64), (1025, 1024)])
def test_beyond_its_ends_it_is_refused(batch: int, nearest: int) -> None:
    assert not TABLE.covers(batch)
    with pytest.raises(BadInput) as caught:
        TABLE.epochs_at(batch)
    (fault,) = caught.value.faults
    assert (fault.value, fault.nearest) == (batch, nearest)


def test_the_critical_batch_needs_twice_the_epochs() -> None:
    table = Convergence.critical_batch(samples=10, least_epochs=3, critical_batch=1000, batches=(1, 1000, 4000))
    assert table.epochs == pytest.approx((3.003, 6, 15))
    steps = [e / b for e, b in zip(table.epochs, table.batches, strict=True)]
    assert steps == sorted(steps, reverse=True)


def test_every_fault_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        Convergence(samples=0, batches=(64, 64, 128), epochs=(1, -2))
    assert [fault.key for fault in caught.value.faults] == ["samples", "epochs", "epochs.1", "batches.1"]
