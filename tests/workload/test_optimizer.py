"""Optimizers by name."""

import pytest

from clustersim.faults import BadInput
from clustersim.workload.optimizer import find_optimizer
from clustersim.workload.optimizers.elementwise import ADAM, LION


def test_an_optimizer_is_found_by_name() -> None:
    assert find_optimizer("lion") is LION
    assert find_optimizer("adam") is ADAM
    with pytest.raises(BadInput, match=r"plan.optimizer: 'adm' must be one of .*; nearest: adam"):
        find_optimizer("adm")
