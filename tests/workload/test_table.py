"""Rows come back in the order in which they were added, one by one or many at once."""

from __future__ import annotations

import numpy as np

from clustersim.workload.table import Table


def test_rows_and_blocks_keep_their_order() -> None:
    table = Table(2)
    assert table.add(1, 2) == 0
    table.extend(np.array([[3, 4], [5, 6]]))
    assert table.add(7, 8) == 3
    assert table.rows().tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    table.add(9, 10)
    assert table.rows().tolist()[-1] == [9, 10]
    assert len(table) == 5


def test_no_rows_have_their_width() -> None:
    table = Table(4)
    table.extend(np.empty((0, 4), dtype=np.int64))
    assert table.rows().shape == (0, 4)
    assert len(table) == 0


def test_without_an_order_single_rows_stand_behind_blocks() -> None:
    table = Table(1, ordered=False)
    table.add(1)
    table.extend(np.array([[2], [3]]))
    table.add(4)
    assert sorted(table.rows().reshape(-1).tolist()) == [1, 2, 3, 4]
    assert len(table) == 4
