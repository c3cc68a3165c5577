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


def test_on_a_mesh_two_a_ring():
    orders = np.array([[1, 2, 3, 0], [3, 0, 1, 2]])
    shape = GroupShape(node=np.zeros(4, dtype=np.int64), rings=np.tile(orders, (3, 1)))
    assert collective_sms(Layout.of(shape)) == 12
    many = GroupShape(node=np.zeros(4, dtype=np.int64), rings=np.tile(orders, (9, 1)))
    assert collective_sms(Layout.of(many)) == 32


def test_never_more_than_nccl_allows():
    assert collective_sms(layout(72, 72)) == 32
    assert point_to_point_sms(num_nodes=8, num_peers=63) == 32
