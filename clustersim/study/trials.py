"""What measured collectives may run as: their steps and loads, which no number of the library changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.loads import loads_of
from clustersim.collective.seating import seatings
from clustersim.collective.select import options, pin
from clustersim.hardware.communication import Communication, Transport, protocols
from clustersim.hardware.protocol import Demand
from clustersim.study.measured import Measured
from clustersim.topology.meshes import meshes

__all__ = ["Trials"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Trials:
    """What every row may run as, batched by algorithm; rows count from 0.

    Parameters
    ----------
    batches : tuple[tuple[str, Demand, NDArray[int64]], ...]
        (algorithm, its demands (k,), their rows (k,))
    added, least : NDArray[float64], shape (num_rows,)
        of the rows' clocks [s]
    """

    batches: tuple[tuple[str, Demand, NDArray[np.int64]], ...]
    added: NDArray[np.float64]
    least: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[Measured]) -> Trials:
        """Lay all rows out on their topologies."""
        found: dict[tuple[str, bool], list[tuple[int, Demand]]] = {}
        for index, algorithm, demand in _demands(rows):
            found.setdefault((algorithm, demand.pipelined), []).append((index, demand))
        return cls(
            batches=tuple(
                (algorithm, _stacked([demand for _, demand in batch]), np.array([index for index, _ in batch]))
                for (algorithm, _), batch in found.items()
            ),
            added=np.array([row.clock.added for row in rows]),
            least=np.array([row.clock.least for row in rows]),
        )

    def seconds(self, node: Communication, network: Transport) -> NDArray[np.float64]:
        """Times of all rows, shape (num_rows,) [s]: of the fastest algorithm and protocol, on the row's clock."""
        known = protocols(node, network)
        alone = np.full(len(self.added), np.inf)
        for algorithm, demand, index in self.batches:
            for way in known[algorithm]:
                runs = way.runs(demand)
                np.minimum.at(alone, index[runs], way.ns(demand)[0][runs] / 1e9)
        return np.maximum(alone + self.added, self.least)


def _demands(rows: Sequence[Measured]) -> Iterator[tuple[int, str, Demand]]:
    """(row, algorithm, demand) of each thing that each row may run as; rows of one group are laid out together."""
    groups: dict[tuple[int, bytes, str, str | None], list[int]] = {}
    for index, row in enumerate(rows):
        key = id(row.topology), row.devices.tobytes(), row.row.collective, row.algorithm
        groups.setdefault(key, []).append(index)
    for members in groups.values():
        first = rows[members[0]]
        devices = first.devices.reshape(1, -1)
        ((shape,), _) = seatings(first.topology, meshes(first.topology), devices)
        kind = first.row.collective
        ways = options(kind, 1, shape) if first.algorithm is None else (pin(first.algorithm),)
        for way in ways:
            traffic = tuple(way.algorithm(kind, rows[index].row.nbytes, shape) for index in members)
            demands = loads_of(first.topology, devices, traffic).demands
            yield from ((i, what.algorithm, d) for i, what, d in zip(members, traffic, demands, strict=True))


def _stacked(demands: Sequence[Demand]) -> Demand:
    """Demands of single groups as those of many."""
    names = [field.name for field in fields(Demand) if field.name != "pipelined"]
    columns = {name: np.array([np.ravel(getattr(demand, name))[0] for demand in demands]) for name in names}
    return Demand(**columns, pipelined=demands[0].pipelined)
