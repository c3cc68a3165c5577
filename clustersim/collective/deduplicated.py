"""Deduplicated: tokens of a mixture of experts, each sent once to a node and passed on once to a member there."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from clustersim.collective.channels import PEERS_AT_ONCE
from clustersim.collective.checks import require_call
from clustersim.collective.demand import flows_on_busiest_link, memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.faults import BadInput, Fault

__all__ = ["NUM_SMS", "Deduplicated"]

NUM_SMS = 20
"""DeepSeek-V3 Technical Report, 2024, section 3.2.2: 20 SMs for dispatch and combine; the default of DeepEP too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deduplicated:
    """All-to-all of tokens that go to several experts of one node, or of one member.

    A member's payload counts each token ``top_k`` times, as a plain all-to-all sends it; here a token goes at most
    once to each other node, to the member of the sender's place there (its lane, so one NIC each), and from there once
    to each member that has one of its experts. Chunks flow through both parts at once. With n members, m on each of N
    nodes, and S' = nbytes / top_k ::

        between nodes   S' · reach(E·m/n) to each of N - 1
        inside a node   N · S' · reach(E/n) from each member to each of m - 1

    where reach(e) is the part of the tokens that meet one of e neighbouring experts, all choices being equally likely.

    Parameters
    ----------
    num_experts : int
        E, spread evenly over the members, in order
    top_k : int
        of them that a token meets
    num_groups, top_groups : int
        a token's experts are picked from ``top_groups`` of ``num_groups`` equal groups of neighbours

    Raises
    ------
    BadInput
        when called, if ``kind`` is not all_to_all, ``nbytes`` is negative, the nodes hold unequal numbers of members,
        or the members do not divide the experts

    References
    ----------
    DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, section 3.2.2; github.com/deepseek-ai/DeepEP, normal kernels.
    """

    num_experts: int
    top_k: int
    num_groups: int = 1
    top_groups: int = 1

    def __call__(self, kind: str, nbytes: int, shape: GroupShape) -> Traffic:
        """Flows; see the class."""
        require_call("deduplicated", kind, nbytes, ("all_to_all",))
        layout = Layout.of(shape)
        num_nodes, m, n = layout.num_nodes, layout.num_lanes, shape.num_members
        if n != num_nodes * m:
            rule = f"needs equally many members on each node, not {m} to {int(layout.count.max())}"
            raise BadInput([Fault(key="algorithm", value="deduplicated", rule=rule, nearest="direct")])
        if self.num_experts % n:
            rule = f"members must divide the {self.num_experts} experts"
            raise BadInput([Fault(key="group", value=n, rule=rule, nearest=math.gcd(n, self.num_experts))])
        once = Fraction(nbytes, self.top_k)
        to_node = math.ceil(once * self.reach(self.num_experts * m // n))
        to_member = once * self.reach(self.num_experts // n)
        lanes = layout.lanes()
        phases = tuple(
            _pairs(groups, each)
            for groups, each in ((lanes.T, to_node), (lanes, math.ceil(num_nodes * to_member)))
            if groups.shape[1] > 1
        )
        memory = memory_traffic(kind, math.ceil(once), shape, phases)
        if phases:
            memory += math.ceil(n * to_member) - math.ceil(once)  # the buffer received is as large as what comes
        return Traffic(
            algorithm="deduplicated",
            phases=phases,
            pipelined=True,
            memory_nbytes=memory,
            num_sms=NUM_SMS if phases else 0,
            num_flows=flows_on_busiest_link(phases),
            own_nbytes=math.ceil(to_member),
        )

    def reach(self, num_neighbours: int) -> Fraction:
        """Part of the tokens that meet at least one of the first ``num_neighbours`` experts.

        With G groups of E/G experts of which g are picked, and j experts of them among the neighbours, a token meets
        none with probability C(g·E/G - j, k) / C(g·E/G, k); the groups are picked evenly, so j is hypergeometric.
        """
        in_group, open_to = self.num_experts // self.num_groups, self.num_experts // self.num_groups * self.top_groups
        ways: Counter[tuple[int, int]] = Counter({(0, 0): 1})
        for first in range(0, self.num_experts, in_group):
            inside = min(max(num_neighbours - first, 0), in_group)
            for (picked, among), count in list(ways.items()):
                ways[picked + 1, among + inside] += count
        missed = sum(
            count * math.comb(open_to - among, self.top_k)
            for (picked, among), count in ways.items()
            if picked == self.top_groups
        )
        return 1 - Fraction(missed, math.comb(self.num_groups, self.top_groups) * math.comb(open_to, self.top_k))


def _pairs(groups: np.ndarray[tuple[int, int], np.dtype[np.int64]], nbytes: int) -> Phase:
    """The same bytes between all members of each group, shape (num_groups, n)."""
    n = groups.shape[1]
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    source, destination = groups[:, first].reshape(-1), groups[:, second].reshape(-1)
    return Phase(
        source=source,
        destination=destination,
        nbytes=np.full_like(source, nbytes),
        num_steps=-(-(n - 1) // PEERS_AT_ONCE),
    )
