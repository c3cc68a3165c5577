"""The routes of a collective's flows, once for all phases that have the same flows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.traffic import Phase
from clustersim.topology.in_network import InNetwork
from clustersim.topology.topology import Topology

__all__ = ["Key", "Routes"]

Key = tuple[bytes, bytes, bytes]
"""Which flows a phase has, whatever they carry."""


class Routes:
    """Routes of n equal groups; signatures share most of their flows.

    Parameters
    ----------
    topology : Topology
    devices : NDArray[int64], shape (n, m)
        of the members of each group
    """

    def __init__(self, topology: Topology, devices: NDArray[np.int64]) -> None:
        self.topology = topology
        self.devices = devices
        self._known: dict[Key, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    @staticmethod
    def key(phase: Phase) -> Key:
        """What two phases with the same flows have in common."""
        tree = b"" if phase.tree is None else phase.tree.tobytes()
        return phase.source.tobytes(), phase.destination.tobytes(), tree

    def of(self, phase: Phase) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows that the flows cross, shape (n, flows · hops), -1 for none; longest latency, shape (n,) [ns]."""
        key = self.key(phase)
        if key not in self._known:
            self._known[key] = self._found(phase)
        return self._known[key]

    def nbytes(self, phase: Phase) -> NDArray[np.int64]:
        """What a phase puts on each of its rows, shape (flows · hops,) [B]."""
        hops, _ = self.of(phase)
        return np.repeat(phase.nbytes, hops.shape[1] // max(1, len(phase.nbytes)))

    def _found(self, phase: Phase) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        topology = self.topology
        source, destination = self.devices[:, phase.source], self.devices[:, phase.destination]
        hops = topology.route(source.reshape(-1), destination.reshape(-1))
        if phase.tree is not None and topology.in_network is not None:
            hops = _through_engines(hops, topology.in_network, source, destination, _added(phase, phase.tree))
        latency_ns = np.append(topology.resources.latency_ns, 0)[hops].sum(axis=1).reshape(source.shape)
        longest = latency_ns.max(axis=1) if source.shape[1] else np.zeros(len(source), dtype=np.int64)
        hops = hops.reshape(len(source), -1)
        return hops if phase.tree is None else _once(hops, phase.tree), longest


def _added(phase: Phase, tree: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Flows that are added up on their way: those of streams that come from several members."""
    _, stream = np.unique(tree, return_inverse=True)
    pairs = np.unique(np.stack([stream.reshape(-1), phase.source], axis=1), axis=0)
    sums: NDArray[np.bool_] = (np.bincount(pairs[:, 0]) > 1)[stream.reshape(-1)]
    return sums


def _through_engines(
    hops: NDArray[np.int64],
    in_network: InNetwork,
    source: NDArray[np.int64],
    destination: NDArray[np.int64],
    added: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Routes on which what is added up also crosses the switches' reduction engines; a copy needs none."""
    flows = np.broadcast_to(added, source.shape).reshape(-1)
    summed = in_network.router(source.reshape(-1)[flows], destination.reshape(-1)[flows])
    rows = np.full((len(hops), max(hops.shape[1], summed.shape[1])), -1, dtype=np.int64)
    rows[:, : hops.shape[1]] = hops
    rows[flows] = -1
    rows[flows, : summed.shape[1]] = summed
    return rows


def _once(hops: NDArray[np.int64], tree: NDArray[np.int64]) -> NDArray[np.int64]:
    """Hops of flows that switches add up or copy: each resource stands there once a tree, -1 for the other times."""
    stream = hops + (hops.max(initial=0) + 2) * np.repeat(tree, hops.shape[1] // max(1, len(tree)))
    order = np.argsort(stream, axis=1, kind="stable")
    ordered = np.take_along_axis(stream, order, axis=1)
    again = np.zeros(hops.shape, dtype=bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(again, -1, hops)
