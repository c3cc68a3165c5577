"""One message."""

import numpy as np
import pytest

from clustersim.collective.point_to_point import point_to_point
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput


@pytest.mark.parametrize(("node", "staged_at_sender"), [([0, 0], 0), ([0, 1], 2)])
def test_position_0_sends_to_position_1(node, staged_at_sender):
    traffic = point_to_point("send_recv", 1000, GroupShape(node=np.array(node)))
    (phase,) = traffic.phases
    assert (phase.source.tolist(), phase.destination.tolist(), phase.nbytes.tolist()) == ([0], [1], [1000])
    assert phase.num_steps == 1
    assert traffic.memory_nbytes.tolist() == [1000 + staged_at_sender * 1000, 3000]
    assert traffic.num_flows == 1


@pytest.mark.parametrize("n", [1, 3])
def test_only_between_two(n):
    with pytest.raises(BadInput, match="2 members"):
        point_to_point("send_recv", 1000, GroupShape(node=np.zeros(n, dtype=np.int64)))
