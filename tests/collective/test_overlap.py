"""Factors on what collectives take from the kernels beside them."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.collective.overlap import Overlap
from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput

TRAFFIC = ring("all_reduce", 1000, GroupShape(node=np.zeros(4, dtype=np.int64)))


def test_by_default_nothing_changes() -> None:
    assert Overlap().of(TRAFFIC) is TRAFFIC


def test_factors_apply_to_sms_and_bytes_in_memory_only() -> None:
    half = Overlap(sm=0.5, hbm=2).of(TRAFFIC)
    assert half.num_sms == TRAFFIC.num_sms // 2 > 0
    assert half.memory_nbytes.tolist() == (2 * TRAFFIC.memory_nbytes).tolist()
    assert half.memory_nbytes.dtype == np.int64
    assert half.phases is TRAFFIC.phases
    none = Overlap(sm=0, hbm=0).of(TRAFFIC)
    assert (none.num_sms, none.memory_nbytes.tolist()) == (0, [0] * 4)


@pytest.mark.parametrize("factor", [-0.1, 101, float("nan"), float("inf")])
def test_a_factor_is_from_0_to_100(factor: float) -> None:
    with pytest.raises(ValueError, match="must be a factor"):
        Overlap(sm=factor)


def test_all_faults_at_once() -> None:
    with pytest.raises(BadInput) as refused:
        Overlap.parse({"sms": 1, "hbm": -1, "sm": "off"})  # type: ignore[dict-item]
    assert [(f.key, f.nearest) for f in refused.value.faults] == [
        ("overlap.sms", "sm"),
        ("overlap.hbm", 1.0),
        ("overlap.sm", 1.0),
    ]
