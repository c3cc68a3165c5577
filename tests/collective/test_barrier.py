"""A barrier is latency only."""

import numpy as np
import pytest

from clustersim.collective.barrier import barrier
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput

SHAPE = GroupShape(node=np.repeat([0, 8, 16, 24], 8))


def test_no_bytes_but_the_steps_of_a_tree_there_and_back():
    traffic = barrier("barrier", 0, SHAPE)
    assert [phase.num_steps for phase in traffic.phases] == [14, 4]
    assert all(len(phase.source) and not phase.nbytes.any() for phase in traffic.phases)
    assert not traffic.memory_nbytes.any()
    assert traffic.algorithm == "barrier"


def test_bytes_are_refused():
    with pytest.raises(BadInput, match="carries nothing"):
        barrier("barrier", 8, SHAPE)
