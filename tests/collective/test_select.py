"""Which algorithms a collective may run as."""

import numpy as np
import pytest

from clustersim.collective.bound import KINDS
from clustersim.collective.ring import ring
from clustersim.collective.select import ALGORITHMS, PROTOCOLS, options, pin
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput


def nodes(*counts, **abilities):
    return GroupShape(node=np.repeat(np.cumsum(counts) - counts, counts), **abilities)


def names(kind, shape):
    found = {algorithm: name for name, algorithm in ALGORITHMS.items()}
    return [found[option.algorithm] for option in options(kind, 1 << 20, shape)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("counts", [(8,), (8, 8), (1, 1)])
def test_options_have_the_kind(kind, counts):
    shape = nodes(1, 1) if kind == "send_recv" else nodes(*counts)
    nbytes = 0 if kind == "barrier" else 1 << 20
    ways = options(kind, nbytes, shape)
    assert all(way.algorithm(kind, nbytes, shape) for way in ways)
    assert (len(ways) == 1) == bool(ways[0].reason)


def test_what_switches_can_do_widens_the_choice():
    assert names("all_reduce", nodes(8)) == ["ring"]
    assert names("all_reduce", nodes(8, 8)) == ["ring", "tree"]
    assert names("all_reduce", nodes(8, multicast=True)) == ["ring", "nvls"]
    assert names("all_reduce", nodes(2, multicast=True)) == ["ring"]
    assert names("all_reduce", nodes(8, 8, multicast=True, in_network=True)) == ["ring", "tree", "nvls", "sharp"]
    assert names("all_gather", nodes(8, 8, multicast=True)) == ["ring"]


def test_a_pin_is_an_algorithm_and_may_be_a_protocol():
    assert pin("ring").algorithm is ring
    assert pin("ring").protocol is None
    assert [pin(f"tree/{protocol}").protocol for protocol in PROTOCOLS] == list(PROTOCOLS)
    mine = lambda kind, nbytes, shape: ring("all_gather", nbytes, shape)  # noqa: E731
    assert pin(mine).algorithm is mine
    assert pin(mine).reason == "pinned by the user"


@pytest.mark.parametrize("name", ["rings", "", 3])
def test_unknown_algorithm_lists_the_known(name):
    with pytest.raises(BadInput) as caught:
        pin(name)
    (fault,) = caught.value.faults
    assert all(known in fault.rule for known in ALGORITHMS)
    assert fault.nearest == ("ring" if name == "rings" else None)


def test_both_parts_of_a_pin_are_looked_at():
    with pytest.raises(BadInput) as caught:
        pin("rings/LL182")
    assert [(f.key, f.nearest) for f in caught.value.faults] == [("algorithm", "ring"), ("protocol", "LL128")]


def test_unknown_kind_lists_the_known():
    with pytest.raises(BadInput, match="all_reduce, all_gather") as caught:
        options("allreduce", 8, nodes(8))
    assert caught.value.faults[0].nearest == "all_reduce"
