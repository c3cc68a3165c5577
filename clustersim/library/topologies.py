"""A topology by name: its card read, its parts loaded, its builders called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import gcd
from pathlib import Path
from typing import Any

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.library.assembly import COMMUNICATION, assemble
from clustersim.library.build import build
from clustersim.library.card import is_file, read_card
from clustersim.library.section import find_builder, parameters
from clustersim.topology.card import TopologyCard
from clustersim.topology.families import FABRICS
from clustersim.topology.topology import Topology

__all__ = ["communication_of", "fabric_of", "host_of", "load_topology"]

_ALIASES = {"fabric": "fabric.build", "nics_per_node": "fabric.nics_per_node"}
"""Keys that people use -> where they stand in the card."""


def load_topology(name_or_path: str | Path, *, nodes: int | None = None, **overrides: Any) -> Topology:
    """Load a cluster.

    Parameters
    ----------
    name_or_path : str or Path
        a card, as in :func:`clustersim.library.find_card`
    nodes : int, optional
        number of nodes; the card's own when left out. Those of several kinds keep their proportions
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
        return assemble(card, described)
    except BadInput as error:
        given = {*overrides, *(_ALIASES.get(key, key) for key in overrides)}
        raise BadInput(
            replace(fault, file="" if fault.key in given else fault.file or str(card.path)) for fault in error.faults
        ) from None


def communication_of(name_or_path: str | Path) -> tuple[str, str]:
    """Names of the cards that say what the communication library costs on a topology's nodes and over its network.

    Raises
    ------
    BadInput
        when there is no such topology
    """
    card = build(read_card("topology", str(name_or_path)), TopologyCard)
    named = {**COMMUNICATION, **card.communication}
    return named["node"], named["network"]


def fabric_of(name_or_path: str | Path, **overrides: Any) -> Mapping[str, Any]:
    """The ``fabric`` of a topology card, with other values for keys of the card as in :func:`load_topology`.

    Raises
    ------
    BadInput
        when there is no such topology, or no such key
    """
    return _override(build(read_card("topology", str(name_or_path)), TopologyCard), overrides).fabric


def host_of(name_or_path: str | Path, **overrides: Any) -> Mapping[str, Any]:
    """The ``host`` of a topology card, with other values as in :func:`fabric_of`; empty where it has none.

    Raises
    ------
    BadInput
        when there is no such topology, or no such key
    """
    return _override(build(read_card("topology", str(name_or_path)), TopologyCard), overrides).host


def _is_file(value: object) -> bool:
    return isinstance(value, str) and is_file(value)


def _override(card: TopologyCard, overrides: Mapping[str, Any]) -> TopologyCard:
    """The card with other values; parameters that only the card's own fabric knows leave with it."""
    keys = ("node", "host", "fabric", "storage", "communication")
    tables: dict[str, Any] = {key: dict(getattr(card, key)) for key in keys}
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
        else:  # a file stands where the caller is, not beside the card
            tables[table][inner] = str(Path(value).expanduser().absolute()) if _is_file(value) else value
    if tables["fabric"].get("build") != card.fabric.get("build") and not faults:
        old = find_builder("fabric.build", card.fabric["build"], FABRICS)
        new = find_builder("fabric", tables["fabric"]["build"], FABRICS)
        for name in sorted((parameters(old) - parameters(new)) & set(card.fabric)):
            del tables["fabric"][name]
            notes += (f"fabric.{name} of {card.name} has no place in {tables['fabric']['build']} and was left out",)
    mix = card.mix
    if not faults and mix and "nodes" in overrides:
        mix = _scaled(card, overrides["nodes"], faults)
    if faults:
        raise BadInput(faults)
    return replace(card, **tables, mix=mix, nodes=overrides.get("nodes", card.nodes), notes=notes)


def _scaled(card: TopologyCard, num_nodes: int, faults: list[Fault]) -> tuple[Mapping[str, Any], ...]:
    """The kinds of nodes in the card's own proportions, so many together."""
    given = [entry.get("count") for entry in card.mix]
    counts = [count for count in given if isinstance(count, int) and count > 0]
    if len(counts) < len(given):
        return card.mix  # what is wrong with it is said where the entries are read
    least = sum(counts) // gcd(*counts)
    if num_nodes % least:
        shares = ":".join(str(count // gcd(*counts)) for count in counts)
        rule = f"must be a multiple of {least}: the kinds of nodes of {card.name} stand {shares}"
        faults.append(Fault(key="nodes", value=num_nodes, rule=rule, nearest=max(1, round(num_nodes / least)) * least))
    scaled = [count * num_nodes // sum(counts) for count in counts]
    return tuple({**entry, "count": count} for entry, count in zip(card.mix, scaled, strict=True))
