"""Bytes that are held somewhere need something there."""

from __future__ import annotations

import numpy as np
import pytest

import clustersim as cs


def job(tier: str) -> cs.Job:
    """One rank that holds a byte throughout."""
    program = cs.Program("alone")
    program.add(cs.Delay(name="wait", kind="pause", measured_ns=10), stream="compute")
    program.resident[f"{tier}/optimizer"] = 1
    return cs.Job(name="held", programs=(program,), program_of=np.zeros(1, np.int64))


@pytest.mark.parametrize(("tier", "what"), [("nvme", "no drives"), ("file_system", "no storage")])
def test_a_tier_that_the_cluster_has_not_is_refused(tier: str, what: str) -> None:
    """Even where no op reads or writes it, as with a cache that holds all."""
    with pytest.raises(cs.BadInput) as error:
        cs.simulate(cs.load_topology("h100-pcie-pairs"), job(tier))
    (fault,) = error.value.faults
    assert (fault.key, fault.value) == ("held.alone", tier)
    assert what in fault.rule


@pytest.mark.parametrize("tier", ["gpu", "host_pinned", "host_pageable", "nvme", "file_system"])
def test_tiers_that_it_has_are_held(tier: str) -> None:
    run = cs.simulate(cs.load_topology("jlse-h100"), job(tier))
    assert cs.summary(run)["peak_memory_bytes"][tier] == 1


def test_a_tier_is_refused_once() -> None:
    one = job("nvme").programs[0]
    twice = cs.Job(name="held", programs=(one, one), program_of=np.arange(2))
    with pytest.raises(cs.BadInput) as error:
        cs.simulate(cs.load_topology("h100-pcie-pairs"), twice)
    assert len(error.value.faults) == 1
