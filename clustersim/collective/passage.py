"""What the flows of all phases do on their routes: steps, their latency, and the bytes on every hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.edges import Edges
from clustersim.collective.phases import Phases
from clustersim.collective.routes import Key, Routes
from clustersim.collective.traffic import Phase, Traffic

__all__ = ["Passage", "by_reach"]

_HOST_LINKS = ("pcie", "pcie_uplink", "socket", "staged", "dram")
"""Kinds of resources that flows between GPUs of a node cross where no NVLink, xGMI or C2C joins them."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Passage:
    """Of n groups, S signatures and P phases; of two reaches, inside nodes (0) and between them (1).

    Parameters
    ----------
    steps : NDArray[int64], shape (2, P)
        serial steps of each reach
    steps_ns : NDArray[int64], shape (n, P)
        the longest latencies of all steps [ns]
    seconds : NDArray[float64], shape (2, n, P)
        time of the busiest resource of a phase that runs by itself [s]; 0 of those that overlap
    over_pcie : NDArray[bool], shape (n, P)
        whether flows inside nodes cross PCIe or a host
    crossed : tuple[dict, dict]
        of each reach, by flows, their rows, and what every signature of one phase puts on each, shape (k, S) [B]
    by_phase : list[tuple[NDArray[int64], Edges]]
        of the phases of the other signatures
    """

    steps: NDArray[np.int64]
    steps_ns: NDArray[np.int64]
    seconds: NDArray[np.float64]
    over_pcie: NDArray[np.bool_]
    crossed: tuple[dict[Key, tuple[NDArray[np.int64], NDArray[np.int64]]], ...]
    by_phase: list[tuple[NDArray[np.int64], Edges]]

    @classmethod
    def of(cls, traffic: Sequence[Traffic], phases: Phases, routes: Routes, node: NDArray[np.int64]) -> Passage:
        """Send all flows.

        Parameters
        ----------
        traffic : Sequence[Traffic]
            one a signature
        phases : Phases
            of it
        routes : Routes
        node : NDArray[int64], shape (m,)
            of the members
        """
        n, num = len(routes.devices), phases.num_phases
        resources = routes.topology.resources
        capacity = resources.capacity.astype(np.float64)
        of_host = np.array([kind in _HOST_LINKS for kind in resources.kinds])[resources.kind]
        of_host = np.append(of_host, False)  # row -1 is none
        passage = cls(
            steps=np.zeros((2, num), dtype=np.int64),
            steps_ns=np.zeros((n, num), dtype=np.int64),
            seconds=np.zeros((2, n, num)),
            over_pcie=np.zeros((n, num), dtype=bool),
            crossed=({}, {}),
            by_phase=[],
        )
        for s, what in enumerate(traffic):
            for c, phase in zip(phases.columns(s, what), what.phases, strict=True):
                parts = by_reach(phase, node)
                for away, part in parts:
                    hops, route_ns = routes.of(part)
                    if not away:
                        passage.over_pcie[:, c] |= of_host[hops].any(axis=1)
                    passage.steps[away, c] += part.num_steps
                    passage.steps_ns[:, c] += part.num_steps * route_ns
                    if phases.is_one(s):
                        nothing = np.zeros((hops.shape[1], len(traffic)), dtype=np.int64)
                        _, on = passage.crossed[away].setdefault(routes.key(part), (hops, nothing))
                        on[:, s] += routes.nbytes(part)
                if not what.pipelined:
                    rows = np.concatenate([routes.of(part)[0] for _, part in parts], axis=1)
                    edges = Edges.of(rows, np.concatenate([routes.nbytes(part) for _, part in parts])[:, None])
                    passage.seconds[parts[-1][0], :, c] = edges.busiest(capacity, n)[:, 0]
                    if not phases.is_one(s):
                        passage.by_phase.append((np.array([c]), edges))
        return passage

    def edges(
        self, phases: Phases, memory_row: NDArray[np.int64], memory: NDArray[np.int64], *, num_rows: int
    ) -> Edges:
        """What every phase puts on links and on the members' HBM, by phase.

        Parameters
        ----------
        phases : Phases
        memory_row : NDArray[int64], shape (n, m)
            HBM of each member, -1 for none
        memory : NDArray[int64], shape (m, P)
            read plus written there in each phase [B]
        num_rows : int
            resources
        """
        ones, others = phases.ones_and_others()
        in_memory = np.zeros((memory_row.shape[1], len(phases.first) - 1), dtype=np.int64)
        in_memory[:, ones] = memory[:, phases.first[ones]]
        on_links = [pair for reach in self.crossed for pair in reach.values()]
        edges = Edges.of(
            np.concatenate([*(hops for hops, _ in on_links), memory_row], axis=1),
            np.concatenate([*(nbytes for _, nbytes in on_links), in_memory]),
        )
        if not self.by_phase:
            return edges
        own = Edges(group=edges.group, row=edges.row, load=edges.load[:, ones])
        parts = [*self.by_phase, (others, Edges.of(memory_row, memory[:, others])), (phases.first[ones], own)]
        return Edges.merged(parts, num_rows=num_rows, num_columns=phases.num_phases)

    def overlapping(self, capacity: NDArray[np.float64], num_signatures: int) -> NDArray[np.float64]:
        """Time of the busiest link by the flows of each reach, of signatures of one phase, shape (2, n, S) [s]."""
        n = self.seconds.shape[1]
        found = np.zeros((2, n, num_signatures))
        for reach, crossed in enumerate(self.crossed):
            if crossed:
                rows = np.concatenate([hops for hops, _ in crossed.values()], axis=1)
                edges = Edges.of(rows, np.concatenate([nbytes for _, nbytes in crossed.values()]))
                found[reach] = edges.busiest(capacity, n)
        return found


def by_reach(phase: Phase, node: NDArray[np.int64]) -> list[tuple[int, Phase]]:
    """A phase's flows inside nodes (0) and between them (1); steps count where the farther flows are."""
    away = node[phase.source] != node[phase.destination]
    if away.all() or not away.any():
        return [(int(away.any()), phase)]
    kept = []
    for reach, mask in ((0, ~away), (1, away)):
        part = Phase(
            source=phase.source[mask],
            destination=phase.destination[mask],
            nbytes=phase.nbytes[mask],
            num_steps=reach * phase.num_steps,
            tree=None if phase.tree is None else phase.tree[mask],
        )
        kept.append((reach, part))
    return kept
