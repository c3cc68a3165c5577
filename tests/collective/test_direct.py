"""Size, steps and limits of the pairwise algorithm."""

import numpy as np
import pytest

from clustersim.collective.channels import PEERS_AT_ONCE
from clustersim.collective.direct import MAX_MEMBERS, direct
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput


def one_node(n):
    return GroupShape(node=np.zeros(n, dtype=np.int64))


def test_every_pair_once():
    (phase,) = direct("all_to_all", 1 << 20, one_node(16)).phases
    pairs = set(zip(phase.source.tolist(), phase.destination.tolist(), strict=True))
    assert len(pairs) == len(phase.source) == 16 * 15


def test_blocks_are_rounded_up_alike():
    (phase,) = direct("all_to_all", 10, one_node(4)).phases
    assert set(phase.nbytes.tolist()) == {3}


def test_steps_by_peers_served_at_once():
    assert direct("all_to_all", 1, one_node(8)).phases[0].num_steps == 1
    assert direct("all_to_all", 1, one_node(PEERS_AT_ONCE + 1)).phases[0].num_steps == 1
    assert direct("all_to_all", 1, one_node(PEERS_AT_ONCE + 2)).phases[0].num_steps == 2


def test_weight_is_the_number_of_peers():
    assert direct("all_to_all", 1, one_node(8)).num_flows == 7
    assert direct("gather", 1, one_node(8)).num_flows == 7


def test_too_many_pairs_are_refused():
    with pytest.raises(BadInput, match=f"at most {MAX_MEMBERS}"):
        direct("all_to_all", 1, one_node(MAX_MEMBERS + 1))
    assert len(direct("gather", 1, one_node(MAX_MEMBERS + 1)).phases[0].source) == MAX_MEMBERS
