"""What holds for every algorithm, kind and shape: bytes are conserved, nothing beats the lower bound."""

from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.collective.bound import bus_factor, lower_bound
from clustersim.collective.select import ALGORITHMS
from clustersim.collective.traffic import GroupShape
from clustersim.collective.well_formed import require_well_formed
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
    "hierarchical": ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"),
    "direct": ("all_to_all", "all_gather", "reduce_scatter", "gather", "scatter"),
    "nvls": ("all_reduce", "all_gather", "reduce_scatter"),
    "sharp": ("all_reduce", "all_gather", "reduce_scatter"),
    "collnet_chain": ("all_reduce",),
    "halving_doubling": ("all_reduce", "all_gather", "reduce_scatter"),
    "bruck": ("all_to_all", "all_gather"),
    "pat": ("all_gather", "reduce_scatter"),
}
PAIRS = [(name, kind) for name, kinds in KINDS.items() for kind in kinds]
IN_SWITCHES = ("nvls", "sharp", "collnet_chain")
BLIND_TO_NODES = ("direct", "halving_doubling", "bruck")


def num_nodes(shape):
    return len(np.unique(shape.node))


def is_equal(shape):
    """As many members on each node."""
    return len(set(np.unique(shape.node, return_counts=True)[1])) == 1


def fits(name, shape):
    """Whether the algorithm runs on groups that sit so."""
    n, nodes = shape.num_members, num_nodes(shape)
    return {
        "hierarchical": is_equal(shape),
        "nvls": is_equal(shape) and nodes < n,
        "sharp": is_equal(shape) and nodes > 1,
        "collnet_chain": nodes > 1,
        "pat": nodes == n,
    }.get(name, True)


def flows(name, kind, nbytes, shape):
    """Of an algorithm, behind switches that do what it needs."""
    able = name in IN_SWITCHES
    return ALGORITHMS[name](kind, nbytes, replace(shape, multicast=able, in_network=able))


CASES = [
    pytest.param(name, kind, shape, id=f"{name} {kind} {title}")
    for name, kind in PAIRS
    for title, shape in SHAPES.items()
    if fits(name, shape)
]


@st.composite
def groups(draw):
    """Up to six nodes of up to six members, in blocks or shuffled."""
    most = st.just(draw(st.integers(1, 6))) if draw(st.booleans()) else st.integers(1, 6)
    counts = draw(st.lists(most, min_size=1, max_size=6))
    seats = np.repeat(np.arange(len(counts)), counts)
    if draw(st.booleans()):
        seats = np.array(draw(st.permutations(seats.tolist())))
    return GroupShape(node=np.array([int(np.flatnonzero(seats == seat)[0]) for seat in seats]))


SIZES = st.integers(0, 6).flatmap(lambda power: st.integers(0, 10 ** (power + 4)))


def num_rings(shape):
    """Among which the bytes are divided, each rounded up."""
    return 1 if shape.rings is None else len(shape.rings)


def sent_and_received(traffic, n):
    """Bytes by member, over all phases; one stream of a tree leaves or reaches a member once."""
    sent, received = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    for phase in traffic.phases:
        for end, total in ((phase.source, sent), (phase.destination, received)):
            if phase.tree is None:
                np.add.at(total, end, phase.nbytes)
            else:
                streams = zip(phase.tree.tolist(), end.tolist(), phase.nbytes.tolist(), strict=True)
                for _, member, nbytes in set(streams):
                    total[member] += nbytes
    return sent, received


def alone(traffic, n):
    """Time on a uniform network, where each member sends and receives at 1 B/s, both ways at once [s]."""
    phases = [traffic.phases] if traffic.pipelined else [(phase,) for phase in traffic.phases]
    return sum(max(map(np.max, sent_and_received(replace(traffic, phases=together), n))) for together in phases)


def exact_total(name, kind, nbytes, shape):
    """Bytes that all members send, before any is rounded up."""
    n, nodes = shape.num_members, num_nodes(shape)
    m = n // nodes
    if kind in ("gather", "scatter"):
        return (n - 1) / n * nbytes
    if (name, kind) == ("nvls", "all_reduce"):  # a member sends S inside; a tree a lane has 2(N-1) edges of S/m
        return (n + 2 * (nodes - 1)) * nbytes
    if (name, kind) == ("collnet_chain", "all_reduce"):  # there and back on chains, and once from each node and lane
        return (2 * (n - nodes) + nodes) * nbytes
    by_member = exact_by_member(name, kind, nbytes, shape)[0]
    if by_member is not None:
        return by_member.sum()
    assert name not in IN_SWITCHES or m == 1
    # every block but one has to move to or from each member
    return (2 if kind == "all_reduce" else 1) * (n - 1) * nbytes


def exact_by_member(name, kind, nbytes, shape):
    """(sent, received) of each member where the kind fixes it, None where it is the algorithm's business."""
    n, nodes = shape.num_members, num_nodes(shape)
    m = n // nodes
    share = bus_factor(kind, n) * nbytes
    others = np.arange(n) > 0
    all_alike = np.ones(n) * nbytes
    inside, between = (m - 1) / m, (nodes - 1) / nodes  # of a payload that is not a member's own, or its lane's
    bits = sum(way.bit_count() for way in range(n))
    own = {
        ("hierarchical", "all_to_all"): ((inside + between) * all_alike,) * 2,
        ("bruck", "all_to_all"): (bits / n * all_alike,) * 2,
        ("halving_doubling", "all_gather"): (None, share / nbytes * all_alike),
        ("halving_doubling", "reduce_scatter"): (share / nbytes * all_alike, None),
        # the switch copies a share that is sent once, and hands on a sum that arrives once
        ("nvls", "all_gather"): ((1 / m + between / m) * all_alike, (inside + between / m) * all_alike),
        ("nvls", "reduce_scatter"): ((inside + between / m) * all_alike, (1 / m + between / m) * all_alike),
        ("sharp", "all_reduce"): (((m > 1) + 1 / m) * all_alike,) * 2,
        ("sharp", "all_gather"): (((m > 1) / m + 1 / n) * all_alike, (inside + between / m) * all_alike),
        ("sharp", "reduce_scatter"): ((inside + between / m) * all_alike, ((m > 1) / m + 1 / n) * all_alike),
    }
    fixed = {
        "broadcast": (None, others * nbytes),
        "reduce": (others * nbytes, None),
        "gather": (others * nbytes / n, ~others * share),
        "scatter": (~others * share, others * nbytes / n),
        "all_reduce": (None, None),
    }
    return own.get((name, kind), fixed.get(kind, (np.full(n, share), np.full(n, share))))


def assert_conserved(name, kind, shape, nbytes):
    n = shape.num_members
    sent, received = sent_and_received(flows(name, kind, nbytes, shape), n)
    blocks = n * (1 + n.bit_length()) * num_rings(shape)  # each rounded up
    total = exact_total(name, kind, nbytes, shape)
    assert total * (1 - 1e-12) - 1e-6 <= sent.sum() < total + n * blocks
    for exact, counted in zip(exact_by_member(name, kind, nbytes, shape), (sent, received), strict=True):
        if exact is not None:
            assert (exact * (1 - 1e-12) - 1e-6 <= counted).all()
            assert (counted < exact + blocks).all()
    if kind == "all_reduce":  # what goes up comes down again
        assert (sent == received).all()
    if nbytes % 840 == 0 and n in (2, 4, 5, 7, 8):
        assert sent.sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("nbytes", [840 * 4096, 1_000_003, 1])
@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_bytes_are_conserved(name, kind, shape, nbytes):
    assert_conserved(name, kind, shape, nbytes)


@settings(max_examples=25, deadline=None)
@given(shape=groups(), nbytes=SIZES)
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_bytes_are_conserved_on_any_group(name, kind, shape, nbytes):
    if shape.num_members > 1 and nbytes and fits(name, shape):
        assert_conserved(name, kind, shape, nbytes)


@settings(max_examples=25, deadline=None)
@given(shape=groups(), nbytes=SIZES)
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_flows_are_well_formed_on_any_group(name, kind, shape, nbytes):
    if fits(name, shape):
        require_well_formed(flows(name, kind, nbytes, shape), kind, shape.num_members)


@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_flows_are_between_different_members_of_the_group(name, kind, shape):
    n = shape.num_members
    traffic = flows(name, kind, 1 << 20, shape)
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


def least(name, kind, nbytes, n):
    """Least bytes that some member sends or receives [B].

    Where switches add up and copy, a member still sends, of each byte of its input, the byte or, where it adds up
    itself, the sum; and receives as much. So S for an all-reduce.
    """
    if name in IN_SWITCHES and kind == "all_reduce":
        return nbytes
    return lower_bound(kind, nbytes, n, 1.0)


@pytest.mark.parametrize("nbytes", [1 << 30, 1_000_003])
@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_no_algorithm_beats_the_lower_bound(name, kind, shape, nbytes):
    n = shape.num_members
    time = alone(flows(name, kind, nbytes, shape), n)
    bound = least(name, kind, nbytes, n)
    assert time >= bound * (1 - 1e-12)
    optimal = (
        name in ("ring", "direct", "pat")
        or (name in ("hierarchical", "bruck") and kind != "all_to_all")
        or (name == "halving_doubling" and n.bit_count() == 1)
        or (name == "nvls" and num_nodes(shape) == 1)
        or (name == "sharp" and num_nodes(shape) == n)
    )
    if optimal:
        assert time <= ceil(bound) + 2 * n * num_rings(shape)


@settings(max_examples=25, deadline=None)
@given(shape=groups(), nbytes=SIZES)
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_no_algorithm_beats_the_lower_bound_on_any_group(name, kind, shape, nbytes):
    n = shape.num_members
    if n > 1 and fits(name, shape):
        assert alone(flows(name, kind, nbytes, shape), n) >= least(name, kind, nbytes, n) * (1 - 1e-12)


@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_every_byte_received_costs_memory_traffic(name, kind, shape):
    traffic = flows(name, kind, 1 << 20, shape)
    _, received = sent_and_received(traffic, shape.num_members)
    assert traffic.memory_nbytes.shape == (shape.num_members,)
    assert (traffic.memory_nbytes >= 2 * received + (1 << 20) // shape.num_members).all()


@pytest.mark.parametrize("counts", [(8,), (2,) * 8, (4,) * 4, (1,) * 8])
@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_members_that_sit_alike_have_equal_loads(name, kind, counts):
    shape = GroupShape(node=np.repeat(np.cumsum(counts) - counts, counts))
    rooted = kind in ("broadcast", "reduce", "gather", "scatter") or name == "tree"
    rooted |= name == "collnet_chain" or (name, kind, len(counts) > 1) == ("nvls", "all_reduce", True)
    if fits(name, shape) and not rooted:
        traffic = flows(name, kind, 1_000_003, shape)
        loads = [*sent_and_received(traffic, shape.num_members)]
        if name not in BLIND_TO_NODES:  # whose messages to other nodes, staged once more, are not spread evenly
            loads.append(traffic.memory_nbytes)
        for counted in loads:
            assert len(set(counted.tolist())) == 1


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in BLIND_TO_NODES for kind in KINDS[name]])
def test_where_all_links_are_equal_nodes_do_not_matter_to_those_that_do_not_look(name, kind):
    wide, tall = (GroupShape(node=np.repeat(np.arange(0, 16, m), m)) for m in (8, 2))
    one, other = flows(name, kind, 1 << 20, wide), flows(name, kind, 1 << 20, tall)
    assert alone(one, 16) == alone(other, 16)
    assert [phase.num_steps for phase in one.phases] == [phase.num_steps for phase in other.phases]


@pytest.mark.parametrize(("name", "kind", "shape"), CASES)
def test_without_bytes_there_are_steps_alone(name, kind, shape):
    empty, single = flows(name, kind, 0, shape), flows(name, kind, 1, shape)
    assert all(not phase.nbytes.any() for phase in empty.phases)
    assert [phase.num_steps for phase in empty.phases] == [phase.num_steps for phase in single.phases]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
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
