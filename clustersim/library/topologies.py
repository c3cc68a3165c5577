"""A topology by name: its card read, its parts loaded, its builders called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.hardware.communication import protocols
from clustersim.library.build import build
from clustersim.library.card import Card, read_card
from clustersim.library.part import load_parts
from clustersim.library.section import Section, find_builder, parameters, read_section
from clustersim.topology.card import TopologyCard
from clustersim.topology.cluster import connect
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.families import FABRICS, NODES
from clustersim.topology.host import Host
from clustersim.topology.node import Node
from clustersim.topology.topology import Topology

__all__ = ["load_topology"]

_ALIASES = {"fabric": "fabric.build", "nics_per_node": "fabric.nics_per_node"}
"""Keys that people use -> where they stand in the card."""

_SUPPLIED = {"node": {"host"}, "host": set[str](), "fabric": {"ports", "num_nodes", "num_gpus"}, "communication": set()}
"""Table -> parameters of its builders that do not come from it."""

_DEFAULTS: Mapping[str, Mapping[str, str]] = {"communication": {"node": "nccl", "network": "rdma"}}
"""What a card that does not say takes: NCCL's own estimates, of all nodes and networks."""


def load_topology(name_or_path: str | Path, *, nodes: int | None = None, **overrides: Any) -> Topology:
    """Load a cluster.

    Parameters
    ----------
    name_or_path : str or Path
        a card, as in :func:`clustersim.library.find_card`
    nodes : int, optional
        number of nodes; the card's own when left out
    **overrides : Any
        other values for keys of the card: ``nics_per_node=4``, ``fabric="fat_tree"`` for another builder, and dotted
        keys as in ``**{"fabric.oversubscription": 2}``

    Raises
    ------
    BadInput
        when there is no such card, or with every fault of the card, its parts and the overrides

    Examples
    --------
    >>> load_topology("dgx-h100", nodes=16).num_devices
    128
    """
    card = read_card("topology", str(name_or_path))
    if nodes is not None:
        overrides["nodes"] = nodes
    described = _override(build(card, TopologyCard), overrides)
    try:
        return _assemble(card, described)
    except BadInput as error:
        given = {*overrides, *(_ALIASES.get(key, key) for key in overrides)}
        raise BadInput(
            replace(fault, file="" if fault.key in given else fault.file or str(card.path)) for fault in error.faults
        ) from None


def _override(card: TopologyCard, overrides: Mapping[str, Any]) -> TopologyCard:
    """The card with other values; parameters that only the card's own fabric knows leave with it."""
    tables: dict[str, Any] = {key: dict(getattr(card, key)) for key in ("node", "host", "fabric", "communication")}
    notes = card.notes
    faults = []
    for key, value in overrides.items():
        table, _, inner = _ALIASES.get(key, key).partition(".")
        if key == "nodes":
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                rule = "must be a whole number, at least 1"
                faults.append(Fault(key=key, value=value, rule=rule, nearest=1))
        elif table not in tables or not inner:
            legal = ("nodes", *_ALIASES)
            rule = f"is not a key here: one of {', '.join(legal)}, or a dotted key of {', '.join(tables)}"
            faults.append(Fault(key=key, value=value, rule=rule, nearest=nearest_name(key, legal)))
        elif table == "fabric" and not card.fabric:
            faults.append(Fault(key=key, value=value, rule=f"has no place: {card.name} has no fabric"))
        else:
            tables[table][inner] = value
    if tables["fabric"].get("build") != card.fabric.get("build") and not faults:
        old = find_builder("fabric.build", card.fabric["build"], FABRICS)
        new = find_builder("fabric", tables["fabric"]["build"], FABRICS)
        for name in sorted((parameters(old) - parameters(new)) & set(card.fabric)):
            del tables["fabric"][name]
            notes += (f"fabric.{name} of {card.name} has no place in {tables['fabric']['build']} and was left out",)
    if faults:
        raise BadInput(faults)
    return replace(card, **tables, nodes=overrides.get("nodes", card.nodes), notes=notes)


def _assemble(card: Card, described: TopologyCard) -> Topology:
    """Load the parts and call the builders; what is wrong with the tables and the parts is reported together."""
    faults: list[Fault] = []
    takers: dict[str, tuple[Callable[..., Any], ...]] = {}
    with _collect(faults):
        takers["node"] = (find_builder("node.build", described.node.get("build"), NODES),)
    with_host = "node" in takers and "host" in parameters(takers["node"][0])
    if with_host:
        takers["host"] = (Host,)
    elif described.host and "node" in takers:
        rule = f"has no place: {described.node['build']} lays out its own"
        faults.append(Fault(key="host", value=sorted(described.host), rule=rule))
    if described.fabric:
        with _collect(faults):
            takers["fabric"] = (find_builder("fabric.build", described.fabric.get("build"), FABRICS), Ports.spread)
    takers["communication"] = (protocols,)
    sections: dict[str, Section] = {}
    for key, targets in takers.items():
        with _collect(faults):
            table = {name: value for name, value in getattr(described, key).items() if name != "build"}
            table = {**_DEFAULTS.get(key, {}), **table}
            sections[key] = read_section(card, key, table, targets, _SUPPLIED[key])
    parts: dict[str, Any] = {}
    with _collect(faults):
        wanted = {f"{key}.{name}": part for key, section in sections.items() for name, part in section.parts.items()}
        parts = load_parts(wanted, beside=card.path)
    if faults:
        raise BadInput(faults)
    given = {key: {**s.values, **{name: parts[f"{key}.{name}"] for name in s.parts}} for key, s in sections.items()}
    node: Node = takers["node"][0](**given["node"], **({"host": Host(**given["host"])} if with_host else {}))
    fabric: Fabric | None = None
    if "fabric" in takers:
        mine = {name: given["fabric"].pop(name) for name in parameters(Ports.spread) & set(given["fabric"])}
        ports = Ports.spread(**mine, num_gpus=node.num_gpus)
        fabric = takers["fabric"][0](**given["fabric"], ports=ports, num_nodes=described.nodes)
    sources = {f"{key}.{name}": source for key, part in parts.items() for name, source in part.sources.items()}
    wired = connect(
        node,
        fabric,
        name=described.name,
        num_nodes=described.nodes,
        notes=described.notes,
        sources={**described.sources, **sources},
    )
    return replace(wired, protocols=protocols(**given["communication"]))


@contextmanager
def _collect(faults: list[Fault]) -> Iterator[None]:
    """Note the faults of an input that is bad and go on, to find the others too."""
    try:
        yield
    except BadInput as error:
        faults += error.faults
