"""The resource table: rows and names."""

import numpy as np
import pytest

from clustersim.topology.resources import Block, ResourceTable


@pytest.fixture
def table():
    return ResourceTable(
        [
            Block(kind="nvlink", shape=(2, 4), capacity=1e9, latency=2e-7, label="node{}/gpu{}/nvlink.up", num_links=3),
            Block(kind="spine", shape=(), capacity=5e9, latency=0.0, label="spine"),
            Block(kind="nvlink", shape=(12,), capacity=2e9, latency=1e-9, label="leaf{}/up"),
        ]
    )


def test_rows_names_and_arrays_agree(table):
    assert len(table) == 21
    assert table.name(0) == "node0/gpu0/nvlink.up"
    assert table.name(7) == "node1/gpu3/nvlink.up"
    assert table.name(8) == "spine"
    assert table.name(20) == "leaf11/up"
    assert [table.find(name) for name in table.names()] == list(range(21))
    assert table.capacity[[0, 8, 20]].tolist() == [10**9, 5 * 10**9, 2 * 10**9]
    assert table.latency_ns[[0, 8, 20]].tolist() == [200, 0, 1]
    assert [table.kinds[k] for k in table.kind[[0, 8, 20]]] == ["nvlink", "spine", "nvlink"]
    assert table.block(5).num_links == 3


@pytest.mark.parametrize("name", ["", "leaf", "leaf/up", "leaf12/up", "leaf1/upper", "node0/gpu4/nvlink.up", "spine0"])
def test_a_name_that_is_none_is_not_found(table, name):
    with pytest.raises(KeyError):
        table.find(name)


def test_a_row_that_is_none_has_no_name(table):
    for row in (-1, 21):
        with pytest.raises(IndexError):
            table.name(row)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("leaf12/up", "leaf11/up"),
        ("leaf3/upp", "leaf3/up"),
        ("node0/gpu9/nvlink.up", "node0/gpu3/nvlink.up"),
        ("node1/gpu1/nvlink", "node1/gpu1/nvlink.up"),
        ("zzz", None),
    ],
)
def test_the_nearest_name(table, name, nearest):
    assert table.nearest(name) == nearest


def test_other_capacities_leave_the_table_as_it_was(table):
    changed = table.with_capacity(np.array([8]), np.array([7]))
    assert (changed.capacity[8], table.capacity[8]) == (7, 5 * 10**9)
    assert changed.name(8) == "spine"
