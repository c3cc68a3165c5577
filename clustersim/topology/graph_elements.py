"""Vertices and edges of a user's own graph: what they may say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from clustersim.faults import Fault, nearest_name
from clustersim.topology.resources import MOST_CAPACITY, Block
from clustersim.units import UnitError, parse

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["MAX_DEVICES", "count_faults", "read_edge", "vertex_faults"]

MAX_DEVICES = 512
"""Devices of a topology that keeps a route for every pair: the table has n · n · hops entries."""

_ROLES = ("gpu", "switch")
_VERTEX = ("role", "node", "radix")
_EDGE = ("bandwidth", "latency", "num_links", "kind", "name")


def vertex_faults(graph: nx.Graph[Any]) -> Iterator[Fault]:
    """Vertices whose role is none, with attributes that are not known, or with more links than ports."""
    for vertex, given in graph.nodes(data=True):
        role = given.get("role")
        if role not in _ROLES:
            rule = f"must be one of {', '.join(_ROLES)}"
            yield Fault(key=f"{vertex}.role", value=role, rule=rule, nearest=nearest_name(str(role), _ROLES))
        yield from _unknown(str(vertex), given, _VERTEX)
        if "radix" in given:
            yield from _degree_faults(graph, vertex, given["radix"])


def count_faults(num_devices: int) -> Iterator[Fault]:
    """A graph without a GPU, or with too many."""
    if not 1 <= num_devices <= MAX_DEVICES:
        rule = f"GPUs: a graph keeps a route for every pair and may have 1 to {MAX_DEVICES} of them"
        yield Fault(key="graph", value=num_devices, rule=rule, nearest=min(max(num_devices, 1), MAX_DEVICES))


def read_edge(way: str, given: Mapping[str, Any], *, directed: bool) -> tuple[Block, list[Fault]]:
    """One direction of an edge, and what is wrong with its attributes."""
    faults = list(_unknown(way, given, _EDGE if directed else _EDGE[:-1]))
    quantity = {"bandwidth": 1.0, "latency": 0.0}
    for key, unit in (("bandwidth", "B/s"), ("latency", "s")):
        try:
            quantity[key] = parse(given[key], unit)
        except KeyError:
            faults.append(Fault(key=f"{way}.{key}", value=None, rule=f"must be given [{unit}]"))
        except UnitError as error:
            faults.append(Fault(key=f"{way}.{key}", value=error.value, rule=error.rule, nearest=error.nearest))
    if not 1 <= quantity["bandwidth"] <= MOST_CAPACITY:
        rule = f"must be from 1 to {MOST_CAPACITY:g} B/s"
        nearest = MOST_CAPACITY if quantity["bandwidth"] > 1 else 1
        faults.append(Fault(key=f"{way}.bandwidth", value=given["bandwidth"], rule=rule, nearest=nearest))
        quantity["bandwidth"] = 1.0
    num_links = given.get("num_links", 1)
    if not isinstance(num_links, int) or num_links < 1:
        rule = "must be a whole number of links, at least 1"
        faults.append(Fault(key=f"{way}.num_links", value=num_links, rule=rule, nearest=1))
    label = str(given.get("name", way))
    if "{}" in label:
        faults.append(Fault(key=way, value=label, rule="must be a name without {}"))
    kind = str(given.get("kind", "link"))
    block = Block(
        kind=kind,
        shape=(),
        capacity=quantity["bandwidth"],
        latency=quantity["latency"],
        label=label,
        num_links=num_links,
    )
    return block, faults


def _degree_faults(graph: nx.Graph[Any], vertex: Any, radix: object) -> Iterator[Fault]:
    """A vertex with more links than ports; a link is one port for both directions."""
    if not isinstance(radix, int) or isinstance(radix, bool) or radix < 1:
        rule = "must be a whole number of ports, at least 1"
        yield Fault(key=f"{vertex}.radix", value=radix, rule=rule, nearest=1)
        return
    links: dict[Any, int] = {}
    for tail, head, given in graph.edges(data=True):
        if vertex in (tail, head):
            other, count = (head if tail == vertex else tail), given.get("num_links", 1)
            links[other] = max(links.get(other, 0), count if isinstance(count, int) else 1)
    used = sum(links.values())
    if used > radix:
        rule = f"ports are fewer than its links, {used}"
        yield Fault(key=f"{vertex}.radix", value=radix, rule=rule, nearest=used)


def _unknown(owner: str, given: Mapping[Any, Any], known: tuple[str, ...]) -> Iterator[Fault]:
    for key in given:
        if key not in known:
            rule = f"is not one of {', '.join(known)}"
            yield Fault(key=owner, value=key, rule=rule, nearest=nearest_name(str(key), known))
