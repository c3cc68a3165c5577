"""What holds for every algorithm, kind and shape: bytes are conserved, nothing beats the lower bound."""

from math import ceil

import numpy as np
import pytest

from clustersim.collective.bound import bus_factor, lower_bound
from clustersim.collective.select import ALGORITHMS
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput


def mesh(node, rings):
    return GroupShape(node=np.array(node), rings=np.array(rings))


SHAPES = {
    **{f"one node of {n}": GroupShape(node=np.zeros(n, dtype=np.int64)) for n in range(2, 9)},
    "2x8": GroupShape(node=np.repeat([0, 8], 8)),
    "4x1": GroupShape(node=np.arange(4)),
    "5x1": GroupShape(node=np.arange(5)),
    "3x4": GroupShape(node=np.repeat([0, 4, 8], 4)),
    "unequal 4+2+3": GroupShape(node=np.repeat([0, 4, 6], [4, 2, 3])),
    "unequal 1+4+4": GroupShape(node=np.repeat([0, 1, 5], [1, 4, 4])),
    "unequal 4+1": GroupShape(node=np.repeat([0, 4], [4, 1])),
    "interleaved 3x4": GroupShape(node=np.tile([0, 1, 2], 4)),
    "interleaved 3+2+2": GroupShape(node=np.array([0, 1, 0, 3, 1, 3, 0])),
    "mesh of 3": mesh([0, 0, 0], [[1, 2, 0], [2, 0, 1]]),
    "mesh of 4": mesh([0] * 4, [[1, 2, 3, 0], [3, 0, 1, 2], [2, 3, 1, 0], [3, 2, 0, 1], [1, 3, 0, 2], [2, 0, 3, 1]]),
    "meshes 2x4": mesh([0, 0, 0, 0, 4, 4, 4, 4], [[1, 2, 3, 0, 6, 7, 5, 4], [3, 0, 1, 2, 7, 6, 4, 5]]),
    "interleaved meshes 2x3": mesh([0, 1, 0, 1, 0, 1], [[2, 3, 4, 5, 0, 1], [4, 5, 0, 1, 2, 3]]),
    "unequal meshes 3+4+1": mesh([0] * 3 + [3] * 4 + [7], [[1, 2, 0, 4, 5, 6, 3, 7], [2, 0, 1, 5, 6, 4, 3, 7]]),
}
KINDS = {
    "ring": ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"),
    "tree": ("all_reduce", "broadcast", "reduce"),
    "hierarchical": ("all_reduce", "all_gather", "reduce_scatter"),
    "direct": ("all_to_all", "all_gather", "reduce_scatter", "gather", "scatter"),
}
CASES = [
    pytest.param(name, kind, shape, id=f"{name} {kind} {title}")
    for name, kinds in KINDS.items()
    for kind in kinds
    for title, shape in SHAPES.items()
    if name != "hierarchical" or ("unequal" not in title and "3+2+2" not in title)
]


def num_rings(shape):
    """Among which the bytes are divided, each rounded up."""
    return 1 if shape.rings is None else len(shape.rings)


def sent_and_received(traffic, n):
    """Bytes by member, over all phases."""
    sent, received = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for phase in traffic.phases:
        np.add.at(sent, phase.source, phase.nbytes)
        np.add.at(received, phase.destination, phase.nbytes)
    return sent, received


def exact_by_member(kind, nbytes, n):
    """(sent, received) of each member where the kind fixes it, None where it is the algorithm's business."""
    share = bus_factor(kind, n) * nbytes
    others = np.arange(n) > 0
    fixed = {
        "broadcast": (None, others * nbytes),
        "reduce": (others * nbytes, None),
        "gather": (others * nbytes / n, ~others * share),
        "scatter": (~others * share, others * nbytes / n),
        "all_reduce": (None, None),
    }
    return fixed.get(kind, (np.full(n, share), np.full(n, share)))


@pytest.mark.parametrize("nbytes", [840 * 4096, 1_000_003, 1])
@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_bytes_are_conserved(name, kind, shape, nbytes):
    n = shape.num_members
    traffic = ALGORITHMS[name](kind, nbytes, shape)
    sent, received = sent_and_received(traffic, n)

    # every block but one has to move to or from each member: n-1 (all_reduce twice that) whole payloads in total
    payloads = {"gather": (n - 1) / n, "scatter": (n - 1) / n, "all_reduce": 2 * (n - 1)}.get(kind, n - 1)
    assert payloads * nbytes - 1e-6 <= sent.sum() < payloads * nbytes + 2 * n * n * num_rings(shape)
    for exact, counted in zip(exact_by_member(kind, nbytes, n), (sent, received), strict=True):
        if exact is not None:
            assert (exact - 1e-6 <= counted).all()
            assert (counted < exact + n * num_rings(shape)).all()
    if kind == "all_reduce":  # what goes up comes down again
        assert (sent == received).all()
    if nbytes % 840 == 0 and n in (2, 4, 5, 7, 8):
        assert sent.sum() == payloads * nbytes


@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_flows_are_between_different_members_of_the_group(name, kind, shape):
    n = shape.num_members
    traffic = ALGORITHMS[name](kind, 1 << 20, shape)
    assert traffic.phases
    for phase in traffic.phases:
        assert len(phase.source) == len(phase.destination) == len(phase.nbytes) > 0
        assert phase.source.dtype == phase.destination.dtype == phase.nbytes.dtype == np.int64
        assert (phase.source != phase.destination).all()
        assert min(phase.source.min(), phase.destination.min()) >= 0
        assert max(phase.source.max(), phase.destination.max()) < n
        assert (phase.nbytes > 0).all()
    assert sum(phase.num_steps for phase in traffic.phases) >= 1
    assert traffic.algorithm == name
    assert traffic.num_sms > 0
    assert traffic.num_flows >= 1


@pytest.mark.parametrize("nbytes", [1 << 30, 1_000_003])
@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_no_algorithm_beats_the_lower_bound(name, kind, shape, nbytes):
    """On a uniform network, where each member sends and receives at 1 B/s, both ways at once."""
    n = shape.num_members
    traffic = ALGORITHMS[name](kind, nbytes, shape)
    if traffic.pipelined:
        time = max(map(np.max, sent_and_received(traffic, n)))
    else:
        time = sum(
            max(np.bincount(end, weights=phase.nbytes).max() for end in (phase.source, phase.destination))
            for phase in traffic.phases
        )
    bound = lower_bound(kind, nbytes, n, 1.0)
    assert time >= bound * (1 - 1e-12)
    if name in ("ring", "direct", "hierarchical"):  # these are optimal there
        assert time <= ceil(bound) + 2 * n * num_rings(shape)


@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_every_byte_received_costs_memory_traffic(name, kind, shape):
    traffic = ALGORITHMS[name](kind, 1 << 20, shape)
    _, received = sent_and_received(traffic, shape.num_members)
    assert traffic.memory_nbytes.shape == (shape.num_members,)
    assert (traffic.memory_nbytes >= 2 * received + (1 << 20) // shape.num_members).all()


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in KINDS.items() for kind in kinds])
def test_a_group_of_one_moves_nothing(name, kind):
    traffic = ALGORITHMS[name](kind, 1 << 20, GroupShape(node=np.zeros(1, dtype=np.int64)))
    assert traffic.phases == ()
    assert traffic.memory_nbytes.tolist() == [0]
    assert traffic.num_flows == 1


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_kind_that_an_algorithm_lacks_is_refused_with_those_it_has(name):
    with pytest.raises(BadInput) as caught:
        ALGORITHMS[name]("all_reduces", -1, SHAPES["2x8"])
    kind, nbytes = caught.value.faults
    assert (kind.key, nbytes.key, nbytes.nearest) == ("kind", "nbytes", 0)
    for legal in KINDS.get(name, ()):
        assert legal in kind.rule
    if "all_reduce" in KINDS.get(name, ()):
        assert kind.nearest == "all_reduce"
