"""Which algorithm runs, and that the reason is told."""

import numpy as np
import pytest

from clustersim.collective.bound import KINDS
from clustersim.collective.ring import ring
from clustersim.collective.select import ALGORITHMS, resolve, select, tree_limit
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput


def nodes(*counts):
    return GroupShape(node=np.repeat(np.cumsum(counts) - counts, counts))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [(8,), (8, 8), (1, 1)])
def test_the_choice_has_the_kind(kind, counts):
    shape = nodes(1, 1) if kind == "send_recv" else nodes(*counts)
    nbytes = 0 if kind == "barrier" else 1 << 20
    choice = select(kind, nbytes, shape)
    assert choice.algorithm is ALGORITHMS[choice.name]
    assert choice.algorithm(kind, nbytes, shape).algorithm == choice.name
    assert choice.reason


def test_tree_for_small_ring_for_large_over_nodes():
    shape = nodes(*[8] * 16)
    limit = tree_limit(shape)
    assert select("all_reduce", limit, shape).name == "tree"
    assert select("all_reduce", limit + 1, shape).name == "ring"
    assert select("all_gather", 1, shape).name == "ring"


def test_limit_is_where_the_two_times_meet():
    """16 nodes of 8: 222 + 32 ring steps, 14 + 8 tree steps, 8 lanes of 25 GB/s."""
    ring_time = lambda s: 222 * 1.9e-6 + 32 * 4.0e-6 + s / (200e9 * 128 / 254)  # noqa: E731
    tree_time = lambda s: 14 * 1.25e-6 + 8 * 8.5e-6 + s / (0.92 * 200e9 * 128 / 254)  # noqa: E731
    limit = tree_limit(nodes(*[8] * 16))
    assert ring_time(limit) == pytest.approx(tree_time(limit), rel=1e-6)


def test_limit_grows_with_nodes_and_a_tree_that_saves_nothing_is_not_taken():
    limits = [tree_limit(nodes(*[8] * k)) for k in (2, 4, 16, 64, 512)]
    assert limits == sorted(limits)
    assert limits[0] > 0
    assert tree_limit(nodes(8)) == tree_limit(nodes(1, 1)) == 0
    assert select("all_reduce", 8, nodes(8)).name == "ring"


def test_a_pin_overrules_the_choice():
    shape = nodes(8, 8)
    assert resolve(None, "all_reduce", 8, shape)[0] is ALGORITHMS["tree"]
    assert resolve("ring", "all_reduce", 8, shape) == (ring, "pinned by the user")
    mine = lambda kind, nbytes, shape: ring("all_gather", nbytes, shape)  # noqa: E731
    assert resolve(mine, "all_reduce", 8, shape)[0] is mine


@pytest.mark.parametrize("name", ["rings", "", 3])
def test_unknown_algorithm_lists_the_known(name):
    with pytest.raises(BadInput) as caught:
        resolve(name, "all_reduce", 8, nodes(8))
    (fault,) = caught.value.faults
    assert all(known in fault.rule for known in ALGORITHMS)
    assert fault.nearest == ("ring" if name == "rings" else None)


def test_unknown_kind_lists_the_known():
    with pytest.raises(BadInput, match="all_reduce, all_gather") as caught:
        select("allreduce", 8, nodes(8))
    assert caught.value.faults[0].nearest == "all_reduce"
