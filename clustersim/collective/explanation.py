"""Why one collective takes as long as it does: the answer, and its page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.topology.resources import ResourceTable
from clustersim.units import show

__all__ = ["Explanation", "LinkLoad"]

_WIDTH = 80
_MOST_LINES = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkLoad:
    """What one collective puts on one resource.

    Parameters
    ----------
    name : str
    nbytes : int
        [B]
    capacity : float
        [B/s]
    share : float
        of its capacity over the time of the collective, from 0 to 1
    """

    name: str
    nbytes: int
    capacity: float
    share: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Explanation:
    """One collective of one group alone; printing it gives a page.

    Parameters
    ----------
    kind : str
    nbytes : int
        payload, as :data:`clustersim.collective.traffic.Algorithm` counts it [B]
    topology : str
        name
    num_ranks, num_nodes : int
        of the group
    algorithm, protocol : str
        what runs; the protocol is empty where the communication library has none for the algorithm
    reason : str
        why
    num_steps : int
        serial steps
    num_channels : int
        SMs that it takes on each member: one a channel
    seconds, latency_seconds : float
        time, and the part of it that no bandwidth would shorten [s]
    algbw, busbw : float
        algorithm and bus bandwidth as nccl-tests reports them; bus bandwidth is 0 for one rank [B/s]
    lower_bound : float
        least time of any algorithm, by bandwidth alone: :class:`clustersim.collective.cuts.Cuts` [s]
    bounded_by : str
        the cut that sets it; empty where nothing must cross any
    rows, loads : NDArray[int64], shape (E,)
        resources that it crosses, memories among them, and bytes on each [B]
    resources : ResourceTable
        of the topology
    """

    kind: str
    nbytes: int
    topology: str
    num_ranks: int
    num_nodes: int
    algorithm: str
    protocol: str
    reason: str
    num_steps: int
    num_channels: int
    seconds: float
    latency_seconds: float
    algbw: float
    busbw: float
    lower_bound: float
    bounded_by: str
    rows: NDArray[np.int64]
    loads: NDArray[np.int64]
    resources: ResourceTable

    @property
    def achieved(self) -> float:
        """Lower bound over time: 1 for an algorithm that no other can beat."""
        return self.lower_bound / self.seconds if self.seconds else 0.0

    @property
    def bytes_per_link(self) -> dict[str, int]:
        """Bytes by name of the resource [B]."""
        return dict(zip(self.resources.names(self.rows), self.loads.tolist(), strict=True))

    @property
    def busiest(self) -> LinkLoad | None:
        """The resource whose load takes longest; the first of equal ones. None where none is crossed."""
        if not len(self.rows):
            return None
        at = int(np.argmax(self.loads / self.resources.capacity[self.rows]))
        return self._load(at)

    @property
    def links(self) -> tuple[LinkLoad, ...]:
        """Every resource that it crosses, the busiest first."""
        order = np.argsort(-(self.loads / self.resources.capacity[self.rows]), kind="stable")
        return tuple(self._load(int(at)) for at in order)

    def _load(self, at: int) -> LinkLoad:
        row = int(self.rows[at])
        nbytes, capacity = int(self.loads[at]), float(self.resources.capacity[row])
        share = nbytes / capacity / self.seconds if self.seconds else 0.0
        return LinkLoad(name=self.resources.name(row), nbytes=nbytes, capacity=capacity, share=share)

    def __str__(self) -> str:
        """A page of at most 80 columns."""
        ranks = f"{self.num_ranks:,} rank{'s' * (self.num_ranks != 1)}"
        nodes = f"{self.num_nodes:,} node{'s' * (self.num_nodes != 1)}"
        protocol = f", protocol {self.protocol}" if self.protocol else ""
        facts = [
            ("algorithm", f"{self.algorithm}{protocol}, {self.num_channels} channels, {self.num_steps} steps"),
            ("why", self.reason),
            ("time", f"{show(self.seconds, 's')}, of which latency {show(self.latency_seconds, 's')}"),
            ("bandwidth", f"algorithm {show(self.algbw, 'B/s')}, bus {show(self.busbw, 'B/s')}"),
        ]
        if self.bounded_by:
            facts += [
                ("lower bound", f"{show(self.lower_bound, 's')}: {self.bounded_by}"),
                ("achieved", f"{self.achieved:.1%} of that bound's speed"),
            ]
        if (busiest := self.busiest) is not None:
            facts.append(("busiest", f"{busiest.name}: {busiest.share:.1%} of {show(busiest.capacity, 'B/s')}"))
        title = f"{self.kind} of {show(self.nbytes, 'B')} among {ranks} on {nodes} of {self.topology}"
        lines = [*textwrap.wrap(title, _WIDTH), ""]
        for name, text in facts:
            lines += textwrap.wrap(
                text, _WIDTH, initial_indent=f"  {name:<13}", subsequent_indent=" " * 15, break_on_hyphens=False
            )
        return "\n".join([*lines, *self._table()])

    def _table(self) -> Iterator[str]:
        """Lines for the kinds of links, the busiest first."""
        if not len(self.rows):
            return
        block = np.searchsorted(self.resources.first, self.rows, side="right") - 1
        seconds = self.loads / self.resources.capacity[self.rows]
        yield ""
        yield f"  {'links crossed':<38}{'number':>9}{'most bytes':>14}{'busy':>9}"
        blocks = np.unique(block)
        busiest = np.array([seconds[block == b].max() for b in blocks])
        for b in blocks[np.argsort(-busiest, kind="stable")][:_MOST_LINES].tolist():
            here = block == b
            label = self.resources.blocks[b].label.replace("{}", "*")
            label = label if len(label) <= 37 else f"{label[:34]}..."
            share = seconds[here].max() / self.seconds if self.seconds else 0.0
            most = show(float(self.loads[here].max()), "B")
            yield f"  {label:<38}{int(here.sum()):>9,}{most:>14}{share:>9.1%}"
        if len(blocks) > _MOST_LINES:
            yield f"  and {len(blocks) - _MOST_LINES} more kinds, less busy"
