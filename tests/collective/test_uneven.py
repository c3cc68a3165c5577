"""All-to-all with unequal shares: bytes by sender and receiver, and bad matrices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clustersim.collective.channels import PEERS_AT_ONCE
from clustersim.collective.direct import MAX_MEMBERS, direct
from clustersim.collective.traffic import GroupShape
from clustersim.collective.uneven import Uneven
from clustersim.collective.well_formed import require_well_formed
from clustersim.faults import BadInput


def one_node(n: int) -> GroupShape:
    return GroupShape(node=np.zeros(n, dtype=np.int64))


@st.composite
def shares(draw: st.DrawFn) -> np.ndarray:
    n = draw(st.integers(1, 9))
    tokens = np.array(draw(st.lists(st.lists(st.integers(0, 50), min_size=n, max_size=n), min_size=n, max_size=n)))
    tokens[np.arange(n), draw(st.permutations(range(n)))] += 1  # nobody sends nothing
    return tokens / tokens.sum(axis=1, keepdims=True)


@given(share=shares(), nbytes=st.integers(0, 10).flatmap(lambda power: st.integers(0, 10**power)))
def test_every_senders_bytes_are_whole_and_add_up(share: np.ndarray, nbytes: int) -> None:
    n = len(share)
    traffic = require_well_formed(Uneven(share)("all_to_all", nbytes, one_node(n)), "all_to_all", n)
    flows = np.zeros((n, n), dtype=np.int64)
    for phase in traffic.phases:
        np.add.at(flows, (phase.source, phase.destination), phase.nbytes)
    assert not flows.diagonal().any()
    away = share * ~np.eye(n, dtype=bool) * nbytes
    assert (np.abs(flows - away) < 1 + 1e-9).all()
    kept = nbytes - flows.sum(axis=1)
    assert (np.abs(kept - share.diagonal() * nbytes) < 1 + 1e-9).all()
    assert (flows[share == 0] == 0).all()


def test_equal_shares_are_a_direct_exchange() -> None:
    shape = GroupShape(node=np.repeat([0, 4], 4))
    even, known = Uneven(np.full((8, 8), 1 / 8))("all_to_all", 8000, shape), direct("all_to_all", 8000, shape)
    pairs = [
        set(
            zip(t.phases[0].source.tolist(), t.phases[0].destination.tolist(), t.phases[0].nbytes.tolist(), strict=True)
        )
        for t in (even, known)
    ]
    assert pairs[0] == pairs[1]
    assert (even.memory_nbytes == known.memory_nbytes).all()
    assert (even.num_sms, even.num_flows, even.phases[0].num_steps) == (known.num_sms, known.num_flows, 1)


def test_the_fullest_receiver_reads_and_writes_most() -> None:
    """Everyone sends 1000 B, all to member 0: 4000 B to receive, of which 3000 through staging."""
    share = np.zeros((4, 4))
    share[:, 0] = 1
    memory = Uneven(share)("all_to_all", 1000, one_node(4)).memory_nbytes
    assert memory.tolist() == [1000 + 4000 + 2 * 3000, 1000, 1000, 1000]


def test_steps_by_peers() -> None:
    n = PEERS_AT_ONCE + 2
    full = Uneven(np.full((n, n), 1 / n))("all_to_all", n, one_node(n))
    assert full.phases[0].num_steps == 2
    ring = Uneven(np.roll(np.eye(n), 1, axis=1))("all_to_all", n, one_node(n))
    assert (ring.phases[0].num_steps, ring.num_flows) == (1, 1)


def test_the_longest_copy_of_an_own_block_counts() -> None:
    assert Uneven([[0.75, 0.25], [0.5, 0.5]])("all_to_all", 1000, one_node(2)).own_nbytes == 750


def test_all_kept_moves_nothing() -> None:
    traffic = Uneven(np.eye(3))("all_to_all", 1000, one_node(3))
    assert traffic.phases == ()
    assert traffic.memory_nbytes.tolist() == [0, 0, 0]


def test_equal_matrices_are_one_algorithm() -> None:
    one, other = Uneven([[0.5, 0.5], [0.0, 1.0]]), Uneven(((0.5, 0.5), (0.0, 1.0)))
    assert one == other == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert one != Uneven([[0.5, 0.5], [0.5, 0.5]])
    assert repr(one) == repr(other) != repr(Uneven([[0.5, 0.5], [0.0, 1.0]][::-1]))
    with pytest.raises(ValueError, match="read-only"):
        one.share[0, 0] = 1


def test_every_bad_row_is_named() -> None:
    with pytest.raises(BadInput) as caught:
        Uneven([[0.5, 0.5, 0.0], [0.5, 0.2, 0.2], [float("nan"), 1.0, 0.0]])
    assert [(fault.key, fault.nearest) for fault in caught.value.faults] == [("share[1]", 1.0), ("share[2]", 0.0)]
    with pytest.raises(BadInput, match="not negative"):
        Uneven([[1.5, -0.5], [0.0, 1.0]])


@pytest.mark.parametrize("share", [[[1.0, 0.0]], [1.0], [], np.zeros((0, 0))])
def test_a_matrix_is_square(share: object) -> None:
    with pytest.raises(BadInput, match="square"):
        Uneven(share)  # type: ignore[arg-type]


def test_groups_of_another_size_and_other_kinds_are_refused() -> None:
    even = Uneven(np.full((4, 4), 0.25))
    with pytest.raises(BadInput, match="share is for 4"):
        even("all_to_all", 1000, one_node(8))
    with pytest.raises(BadInput, match="not a collective of uneven"):
        even("all_gather", 1000, one_node(4))
    with pytest.raises(BadInput, match=f"at most {MAX_MEMBERS}"):
        Uneven(np.broadcast_to(1.0, (MAX_MEMBERS + 1,) * 2))
