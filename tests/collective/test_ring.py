"""Closed forms of the ring."""

from time import perf_counter

import numpy as np
import pytest

from clustersim.collective.ring import ring
from clustersim.collective.traffic import GroupShape


def nodes(*counts):
    first = np.cumsum(counts) - counts
    return GroupShape(node=np.repeat(first, counts))


@pytest.mark.parametrize("n", range(2, 9))
def test_on_one_node_each_member_sends_twice_n_minus_1_nths(n):
    (phase,) = ring("all_reduce", 840 * n, nodes(n)).phases
    assert phase.nbytes.tolist() == [2 * (n - 1) * 840] * n
    assert phase.num_steps == 2 * (n - 1)
    assert (phase.destination == (phase.source + 1) % n).all()


def test_over_nodes_every_nic_carries_an_eighth_and_nvlink_seven():
    n, nbytes = 32, 32 * 8 * 1000
    inside, between = ring("all_reduce", nbytes, nodes(8, 8, 8, 8)).phases
    through_each = 2 * (n - 1) * nbytes // n
    assert set(between.nbytes.tolist()) == {through_each // 8}
    assert set(inside.nbytes.tolist()) == {through_each // 8 * 7}
    assert sorted(between.source.tolist()) == sorted(between.destination.tolist()) == list(range(n))
    assert (between.source % 8 == between.destination % 8).all()  # one rail each
    assert (between.num_steps, inside.num_steps) == (2 * 4, 2 * 31 - 2 * 4)


@pytest.mark.parametrize("nbytes", [1, 999_983, 10**12 + 1])
def test_equal_members_have_equal_loads_however_the_bytes_divide(nbytes):
    n = 12
    sent, received = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for phase in ring("reduce_scatter", nbytes, nodes(4, 4, 4)).phases:
        assert len(set(phase.nbytes.tolist())) == 1
        np.add.at(sent, phase.source, phase.nbytes)
        np.add.at(received, phase.destination, phase.nbytes)
    assert len({*sent.tolist(), *received.tolist()}) == 1
    assert 0 <= sent[0] - (n - 1) * nbytes / n < 4


def test_with_unequal_nodes_the_smallest_sets_the_number_of_rings():
    inside, between = ring("all_gather", 9 * 1000, nodes(4, 2, 3)).phases
    assert len(between.source) == 3 * 2
    flows = dict(
        zip(zip(between.source.tolist(), between.destination.tolist(), strict=True), between.nbytes, strict=True)
    )
    assert flows == {(0, 4): 4000, (3, 5): 4000, (4, 6): 4000, (5, 7): 4000, (6, 0): 4000, (8, 1): 4000}
    carried = dict(
        zip(zip(inside.source.tolist(), inside.destination.tolist(), strict=True), inside.nbytes, strict=True)
    )
    assert carried[1, 2] == carried[2, 3] == 8000  # all of it: no ring enters or leaves between them
    assert carried[3, 0] == carried[0, 1] == 4000


def test_nothing_reaches_the_root_of_a_broadcast_or_leaves_that_of_a_reduce():
    for phase in ring("broadcast", 1000, nodes(4, 4)).phases:
        assert (phase.destination != 0).all()
    for phase in ring("reduce", 1000, nodes(4, 4)).phases:
        assert (phase.source != 0).all()


def test_one_member_a_node_has_no_flow_inside_a_node():
    (between,) = ring("all_reduce", 4000, nodes(1, 1, 1, 1)).phases
    assert between.nbytes.tolist() == [6000] * 4
    assert between.num_steps == 6


def full_mesh(num_nodes):
    """Nodes of four GPUs with a link between each two: the three orders of four, each both ways."""
    orders = [[1, 2, 3, 0], [1, 3, 0, 2], [2, 3, 1, 0]]
    orders += [np.argsort(order).tolist() for order in orders]
    first = 4 * np.arange(num_nodes)[:, None]
    rings = np.array([(first + order).ravel() for order in np.array(orders)])
    return GroupShape(node=np.repeat(first.ravel(), 4), rings=rings)


@pytest.mark.parametrize(
    ("kind", "each_sends"), [("all_reduce", 2 * 3), ("all_gather", 3), ("reduce_scatter", 3), ("broadcast", 4)]
)
def test_a_full_mesh_of_four_uses_all_twelve_links_alike(kind, each_sends):
    """Each member sends over three links, and each is on a third of the rings."""
    (phase,) = ring(kind, 4 * 6000, full_mesh(1)).phases
    links = dict(zip(zip(phase.source.tolist(), phase.destination.tolist(), strict=True), phase.nbytes, strict=True))
    assert len(links) == len(phase.source) == (9 if kind == "broadcast" else 12)  # nothing comes back to the root
    assert set(links.values()) == {each_sends * 6000 // 3}
    assert phase.num_steps == (2 if kind == "all_reduce" else 1) * 3


def test_over_meshes_nics_carry_what_they_carry_over_switches():
    n, nbytes = 12, 12 * 4 * 6 * 100
    inside, between = ring("all_reduce", nbytes, full_mesh(3)).phases
    _, over_switches = ring("all_reduce", nbytes, nodes(4, 4, 4)).phases
    for attribute in ("source", "destination", "nbytes"):
        assert getattr(between, attribute).tolist() == getattr(over_switches, attribute).tolist()
    through_each = 2 * (n - 1) * nbytes // n
    assert len(inside.source) == 3 * 12
    assert set(inside.nbytes.tolist()) == {through_each * 3 // 4 // 3}  # all but what a NIC brings, over three links


@pytest.mark.benchmark
def test_flows_of_16384_members_cost_a_few_sorts_of_as_many_numbers():
    shape = nodes(*[8] * 2048)
    numbers = np.random.default_rng(0).integers(0, 2**60, len(shape.node))

    def best(call):
        def once():
            start = perf_counter()
            call()
            return perf_counter() - start

        return min(once() for _ in range(5))

    assert best(lambda: ring("all_reduce", 10**9, shape)) < 20 * best(lambda: np.sort(numbers))
