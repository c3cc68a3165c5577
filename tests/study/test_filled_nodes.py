"""Nodes and the ranks that fill them."""

from __future__ import annotations

import pytest

from clustersim.study.filled_nodes import nodes_disagree


@pytest.mark.parametrize(
    ("ranks", "nodes", "per_node", "agree"),
    [
        (16, 2, None, True),
        (16, 2, 8, True),
        (10, 4, None, True),
        (16, 2, 4, False),
        (12, 5, None, False),
        (8, 16, None, False),
    ],
)
def test_ranks_fill_nodes_one_after_the_other(ranks: int, nodes: int, per_node: int | None, agree: bool) -> None:
    assert (nodes_disagree(ranks, nodes, per_node) is None) == agree
