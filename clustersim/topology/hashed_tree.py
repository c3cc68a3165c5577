"""Paths through a tree of switches on which each flow keeps to one of the parallel links, by hash (ECMP)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.topology.switch_tree import Outage, SwitchTree

__all__ = ["HashedTree"]

ATTEMPTS = 1000
"""Ways drawn for a flow before it is said that failed links leave it none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HashedTree:
    """Paths between ports over single links; a flow is a pair of ports.

    A flow's way up is drawn link by link. The way down is then what the wiring leaves: link i of a group ends on switch
    i modulo ``num_above`` of the group above, and what is drawn is one of the links between two switches, if they have
    several. Flows that draw the same link collide, however idle its neighbours are.

    Parameters
    ----------
    groups : SwitchTree
        the tree with each bundle as one resource; here link i of bundle g is row ``first + g · num_uplinks + i``
    first : tuple[int, ...]
        first row of the ports' ``tx`` and ``rx`` and of each tier's ``up`` and ``down`` links
    seed : int
        of the hash
    failed : NDArray[int64], shape (k,)
        rows of links that carry nothing
    """

    groups: SwitchTree
    first: tuple[int, ...]
    seed: int
    failed: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel; see :data:`~clustersim.topology.fabric.PortPath`.

        Raises
        ------
        BadInput
            when failed links leave no way between two ports
        """
        ends = [source_node, source_port, destination_node, destination_port]
        rows = self._draw(*ends, attempt=0)
        if not len(self.failed):
            return rows
        stuck = np.flatnonzero(np.isin(rows, self.failed).any(axis=1))
        for attempt in range(1, ATTEMPTS):
            if not len(stuck):
                return rows
            rows[stuck] = self._draw(*(end[stuck] for end in ends), attempt=attempt)
            stuck = stuck[np.isin(rows[stuck], self.failed).any(axis=1)]
        pair = " -> ".join(f"node{node[stuck[0]]}/nic{port[stuck[0]]}" for node, port in (ends[:2], ends[2:]))
        rule = f"leave no way between two ports (none in {ATTEMPTS} drawn)"
        raise BadInput([Fault(key="perturb.failed_links", value=pair, rule=rule)])

    def outage(self, name: str, count: int) -> Outage | None:
        """What is lost when ``count`` of the switches called ``name`` fail; see :class:`SwitchTree`."""
        lost = self.groups.outage(name, count)
        level = self.groups.level(name)
        if lost is None or level is None or level[0] == 0:
            return lost
        links = []
        for tier, groups in self.groups.bundles(*level):
            above = self.groups.tiers[level[0] - 1].num_above
            link = np.arange(self.groups.tiers[tier].num_uplinks, dtype=np.int64)
            link = link[link % above < count]
            links += [self._row(tier, way, groups[:, None], link).reshape(-1) for way in (0, 1)]
        return Outage(rows=np.concatenate(links), share=1.0, num_switches=lost.num_switches)

    def without(self, rows: NDArray[np.int64]) -> HashedTree:
        """The same tree after links have failed: their flows are drawn again.

        Raises
        ------
        BadInput
            when a group of switches has no link left one way
        """
        failed = np.union1d(self.failed, rows)
        for tier, name in enumerate(self.groups.names[: len(self.groups.tiers)]):
            width = self.groups.tiers[tier].num_uplinks
            for way in (0, 1):
                first, last = self.first[2 + 2 * tier + way], self.first[3 + 2 * tier + way]
                inside = failed[(failed >= first) & (failed < last)] - first
                group, count = np.unique(inside // width, return_counts=True)
                if (count == width).any():
                    value = f"{name}{group[count == width][0]}/{('up', 'down')[way]}"
                    rule = f"leaves no route: all {width} parallel links failed"
                    raise BadInput([Fault(key="perturb.failed_links", value=value, rule=rule)])
        return replace(self, failed=failed)

    def _row(self, tier: int, way: int, group: NDArray[np.int64], link: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.first[2 + 2 * tier + way] + group * self.groups.tiers[tier].num_uplinks + link

    def _draw(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
        *,
        attempt: int,
    ) -> NDArray[np.int64]:
        """The way of each flow at one attempt."""
        tiers, num_ports = self.groups.tiers, self.groups.num_ports
        rows = np.full((len(source_node), 2 * len(tiers) + 2), -1, dtype=np.int64, order="F")
        start, end = source_node * num_ports + source_port, destination_node * num_ports + destination_port
        rows[:, 0], rows[:, -1] = self.first[0] + start, self.first[1] + end
        flow = _mix(_mix(_mix(start, self.seed), attempt) + end.astype(np.uint64), 0)
        at = np.zeros_like(start)  # the switch, within its group, that a flow has climbed to
        spread = 1
        climbed: list[tuple[NDArray[np.bool_], NDArray[np.int64]]] = []
        for t, tier in enumerate(tiers):
            source = tier.group(source_node, source_port)
            apart = source != tier.group(destination_node, destination_port)
            link = _one_of(flow, 2 * t + 1, at, spread, tier.num_uplinks)
            rows[:, t + 1] = np.where(apart, self._row(t, 0, source, link), -1)
            at, spread = link % tier.num_above, tier.num_above
            climbed.append((apart, at))
        beyond = np.zeros(len(start), dtype=bool)
        for t in reversed(range(len(tiers))):
            tier, (apart, top) = tiers[t], climbed[t]
            at = np.where(beyond, at, top)
            link = _one_of(flow, 2 * t + 2, at, tier.num_above, tier.num_uplinks)
            destination = tier.group(destination_node, destination_port)
            rows[:, -2 - t] = np.where(apart, self._row(t, 1, destination, link), -1)
            at = link % tiers[t - 1].num_above if t else at
            beyond = apart
        return rows


def _one_of(
    flow: NDArray[np.uint64], salt: int, at: NDArray[np.int64], spread: int, num_links: int
) -> NDArray[np.int64]:
    """One of the links 0 … num_links-1 that are ``at`` modulo ``spread``, by hash."""
    count = (num_links - at + spread - 1) // spread
    drawn = (_mix(flow, salt) >> np.uint64(1)).astype(np.int64)
    return at + spread * (drawn % count)


def _mix(value: NDArray[np.int64] | NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """A hash of 64 bits: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    z = value.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
