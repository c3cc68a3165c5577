"""SMs follow the channels."""

import numpy as np

from clustersim.collective.channels import collective_sms, point_to_point_sms
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape


def layout(*counts):
    return Layout.of(GroupShape(node=np.repeat(np.cumsum(counts) - counts, counts)))


def test_as_in_nccl_logs():
    assert collective_sms(layout(8)) == 24
    assert collective_sms(layout(8, 8)) == 16
    assert collective_sms(layout(1, 1)) == 2
    assert point_to_point_sms(num_nodes=2, num_peers=1) == 2


def test_never_more_than_nccl_allows():
    assert collective_sms(layout(72, 72)) == 32
    assert point_to_point_sms(num_nodes=8, num_peers=63) == 32
