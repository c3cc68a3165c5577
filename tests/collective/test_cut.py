"""What must cross one cut, whatever the algorithm."""

from __future__ import annotations

import numpy as np
import pytest

from clustersim.collective.bound import KINDS
from clustersim.collective.cut import crossing


def test_sends_cross_only_between_their_two_members() -> None:
    inside = np.array([True, True, False, False])
    assert crossing("send_recv", 7, inside) == (0.0, 0.0)
    assert crossing("send_recv", 7, inside[[0, 2, 1, 3]]) == (7.0, 0.0)
    assert crossing("send_recv", 7, ~inside[[0, 2, 1, 3]]) == (0.0, 7.0)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("barrier", "send_recv", "all_reduce")])
def test_what_leaves_one_side_enters_the_other(kind: str) -> None:
    for inside in ([1, 0, 0, 0, 0], [0, 1, 1, 0, 0], [1, 1, 1, 1, 0]):
        side = np.array(inside, dtype=bool)
        assert crossing(kind, 10, side) == crossing(kind, 10, ~side)[::-1]
