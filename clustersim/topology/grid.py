"""Grids of nodes linked to their neighbours: torus, mesh and ring, with dimension-ordered routes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.faults import BadInput, Fault
from clustersim.hardware.link import Link
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.factors import factorizations, nearest_dims
from clustersim.topology.port_blocks import port_blocks
from clustersim.topology.resources import Block

__all__ = ["MOST_HOPS", "GridPath", "mesh", "ring", "torus"]

MOST_HOPS = 512
"""Links of the longest route: a route lists each of them."""

_AXES = "xyz"


def torus(
    *,
    ports: Ports,
    link: Link,
    num_nodes: int,
    dims: tuple[int, ...] | None = None,
    num_dims: int = 3,
    num_links: int = 1,
) -> Fabric:
    """A grid whose lines close to rings; routes go along x, then y, then z, the shorter way round.

    ``at3-0-1/x.plus`` leads from the node at x=3, y=0, z=1 to the next along x, ``at3-0-1/x.minus`` back; node number
    counts z fastest. Half-way round a ring of even length both ways are as short: the sum of the source's port and its
    coordinate decides, even for plus. So each node with an even number of ports sends half of such traffic each way,
    and routes are the same from every node moved by two along an axis. A ring of two nodes is one bundle of both links.

    Parameters
    ----------
    ports : Ports
        of each node; they lead into the node's own router, which has the links
    link : Link
        to a neighbour: cable and router; its payload is that of the network card
    num_nodes : int
        nodes
    dims : tuple[int, ...], optional
        nodes along x, y and z, one to three; the most even of ``num_dims`` sides when left out
    num_dims : int
        see ``dims``
    num_links : int
        parallel links to each neighbour

    Raises
    ------
    BadInput
        when the sides do not hold exactly the nodes, or a route would have more than 512 links
    """
    return _grid("torus", ports, link, num_nodes, dims, num_dims, num_links)


def mesh(
    *,
    ports: Ports,
    link: Link,
    num_nodes: int,
    dims: tuple[int, ...] | None = None,
    num_dims: int = 2,
    num_links: int = 1,
) -> Fabric:
    """A grid whose lines end at its borders; the parameters, names and errors are those of :func:`torus`."""
    return _grid("mesh", ports, link, num_nodes, dims, num_dims, num_links)


def ring(*, ports: Ports, link: Link, num_nodes: int, num_links: int = 1) -> Fabric:
    """Nodes in a circle: a :func:`torus` of one side."""
    return _grid("ring", ports, link, num_nodes, None, 1, num_links)


def _grid(
    name: str,
    ports: Ports,
    link: Link,
    num_nodes: int,
    dims: tuple[int, ...] | None,
    num_dims: int,
    num_links: int,
) -> Fabric:
    wrap = name != "mesh"
    faults = []
    if num_nodes < 1:
        faults.append(Fault(key="nodes", value=num_nodes, rule="must be at least 1", nearest=1))
    if num_links < 1:
        faults.append(Fault(key="fabric.num_links", value=num_links, rule="must be at least 1", nearest=1))
    if dims is None and not 1 <= num_dims <= len(_AXES):
        nearest = min(max(num_dims, 1), len(_AXES))
        faults.append(Fault(key="fabric.num_dims", value=num_dims, rule="must be from 1 to 3", nearest=nearest))
    elif num_nodes >= 1:
        sides = _most_even(num_nodes, num_dims) if dims is None else tuple(dims)
        faults += _side_faults(sides, num_nodes, wrap, "nodes" if dims is None else "fabric.dims")
    if faults:
        raise BadInput(faults)
    blocks = port_blocks(ports, num_nodes)
    where = "-".join("{}" for _ in sides)
    for axis, side in enumerate(sides):
        if side == 1:
            continue
        count = num_links * (2 if wrap and side == 2 else 1)
        blocks += [
            Block(
                kind=f"{name}_{_AXES[axis]}",
                shape=_cables(sides, axis, wrap),
                capacity=link.payload_bandwidth * ports.nic.efficiency * count,
                latency=link.latency,
                label=f"at{where}/{_AXES[axis]}.{way}",
                num_links=count,
            )
            for way in ("plus", "minus")
        ]
    first = np.concatenate(([0], np.cumsum([block.count for block in blocks])))
    path = GridPath(dims=sides, wrap=wrap, num_ports=ports.count, first=tuple(int(row) for row in first))
    return Fabric(ports=ports, blocks=tuple(blocks), path=path)


def _most_even(num_nodes: int, num_dims: int) -> tuple[int, ...]:
    """The sides with the smallest sum, the longest first."""
    return tuple(sorted(min(factorizations(num_nodes, num_dims), key=sum), reverse=True))


def _side_faults(sides: tuple[int, ...], num_nodes: int, wrap: bool, key: str) -> list[Fault]:
    value = num_nodes if key == "nodes" else list(sides)
    if not 1 <= len(sides) <= len(_AXES):
        nearest: object = list(_most_even(num_nodes, min(max(len(sides), 1), len(_AXES))))
        return [Fault(key=key, value=value, rule="must be one to three sides", nearest=nearest)]
    if min(sides) < 1 or math.prod(sides) != num_nodes:
        rule = f"must be sides whose product is the number of nodes, {num_nodes}"
        return [Fault(key=key, value=value, rule=rule, nearest=list(nearest_dims(num_nodes, sides)))]
    longest = _longest(sides, wrap)
    if longest > MOST_HOPS:
        rule = f"makes routes of {longest:,} links; at most {MOST_HOPS}"
        shorter = _most_even(num_nodes, len(_AXES))
        nearest = list(shorter) if key != "nodes" and _longest(shorter, wrap) <= MOST_HOPS else None
        return [Fault(key=key, value=value, rule=rule, nearest=nearest)]
    return []


def _longest(sides: tuple[int, ...], wrap: bool) -> int:
    return sum(side // 2 if wrap else side - 1 for side in sides)


def _cables(sides: tuple[int, ...], axis: int, wrap: bool) -> tuple[int, ...]:
    """Shape of the links along an axis: cable i lies between i and i + 1; a ring of two has one."""
    side = sides[axis]
    return (*sides[:axis], side if wrap and side > 2 else side - 1, *sides[axis + 1 :])


@dataclass(frozen=True, kw_only=True, slots=True)
class GridPath:
    """Paths between ports along one axis after the other.

    Parameters
    ----------
    dims : tuple[int, ...]
        nodes along each axis
    wrap : bool
        lines are rings
    num_ports : int
        ports of a node
    first : tuple[int, ...]
        first row of the ports' ``tx`` and ``rx``, then of ``plus`` and ``minus`` of each axis of more than one node
    """

    dims: tuple[int, ...]
    wrap: bool
    num_ports: int
    first: tuple[int, ...]

    def __call__(
        self,
        source_node: NDArray[np.int64],
        source_port: NDArray[np.int64],
        destination_node: NDArray[np.int64],
        destination_port: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Rows in order of travel; see :data:`~clustersim.topology.fabric.PortPath`."""
        hops = [self.first[0] + source_node * self.num_ports + source_port]
        at = list(np.unravel_index(source_node, self.dims))
        goal = np.unravel_index(destination_node, self.dims)
        block = 2
        for axis, side in enumerate(self.dims):
            if side == 1:
                continue
            plus, steps = self._way(at[axis], goal[axis], side, source_port)
            shape = _cables(self.dims, axis, self.wrap)
            start = np.where(plus, self.first[block], self.first[block + 1])
            cable = np.where(plus, at[axis], at[axis] - 1)
            onward = np.where(plus, 1, -1)
            for step in range(int(steps.max(initial=0))):
                at[axis] = (cable + step * onward) % shape[axis]
                row = start + np.ravel_multi_index(tuple(at), shape)
                hops.append(np.where(step < steps, row, -1))
            at[axis] = goal[axis]
            block += 2
        hops.append(self.first[1] + destination_node * self.num_ports + destination_port)
        return np.stack(hops, axis=1)

    def _way(
        self, at: NDArray[np.intp], goal: NDArray[np.intp], side: int, port: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Whether each goes up along its line, and over how many links."""
        if not self.wrap or side == 2:
            return goal > at, np.abs(goal - at)
        ahead = (goal - at) % side
        back = side - ahead
        plus = (ahead < back) | ((ahead == back) & ((port + at) % 2 == 0))
        return plus, np.where(plus, ahead, np.where(ahead == 0, 0, back))
