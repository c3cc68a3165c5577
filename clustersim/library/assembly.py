"""From a topology card's tables to a topology: parts loaded, builders called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from clustersim.faults import BadInput, Fault, collect, nearest_name
from clustersim.hardware.communication import protocols
from clustersim.library.build import build
from clustersim.library.card import Card, read_card
from clustersim.library.part import load_parts
from clustersim.library.section import find_builder, named_parts, parameters, read_section
from clustersim.topology.card import TopologyCard
from clustersim.topology.check import require_sound
from clustersim.topology.cluster import NodeKind, connect_mixed
from clustersim.topology.fabric import Fabric, Ports
from clustersim.topology.families import FABRICS, NODES
from clustersim.topology.host import Host
from clustersim.topology.node import Node
from clustersim.topology.storage import SharedStorage
from clustersim.topology.topology import Topology

__all__ = ["COMMUNICATION", "assemble"]

COMMUNICATION: Mapping[str, str] = {"node": "nccl", "network": "rdma"}
"""What a card that does not say takes: NCCL's own estimates, of all nodes and networks."""

_PORTS = ("nic", "nics_per_node", "nic_of")
_ENTRY = ("count", "topology", "node", "host", *_PORTS)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """One kind of node as cards describe it.

    Parameters
    ----------
    prefix : str
        of its keys: empty, or ``mix.0.``
    card : Card
        that its tables stand in
    count : int
        nodes
    node, host, ports : Mapping[str, Any]
    """

    prefix: str
    card: Card
    count: int
    node: Mapping[str, Any]
    host: Mapping[str, Any]
    ports: Mapping[str, Any]


def assemble(card: Card, described: TopologyCard) -> Topology:
    """Load the parts and call the builders; what is wrong with the tables and the parts is reported together.

    Parameters
    ----------
    card : Card
        for its place
    described : TopologyCard
        what it says, with the caller's own values

    Raises
    ------
    BadInput
        with every fault of the tables and the parts; or with what the builders refuse
    """
    desk = _Desk(faults=[], sources={}, given={})
    kinds = list(_kinds(card, described, desk))
    builders = [desk.node(kind) for kind in kinds]
    lay: Callable[..., Fabric] | None = None
    if described.fabric:
        with collect(desk.faults):
            lay = find_builder("fabric.build", described.fabric.get("build"), FABRICS)
            alone = () if described.mix else (Ports.spread,)
            desk.read("fabric", card, described.fabric, lay, *alone, supplied={"ports", "num_nodes", "num_gpus"})
    desk.read("communication", card, {**COMMUNICATION, **described.communication}, protocols)
    if described.storage:
        desk.read("storage", card, described.storage, SharedStorage)
    if desk.faults:
        raise BadInput(desk.faults)
    made = [desk.kind(kind, make) for kind, make in zip(kinds, builders, strict=True) if make is not None]
    fabric = None
    if lay is not None:
        if not described.mix:
            made = [replace(made[0], ports=desk.ports("fabric", made[0].node.num_gpus))]
        fabric = lay(**desk.given["fabric"], ports=_widest(made), num_nodes=sum(kind.count for kind in made))
    joined = connect_mixed(
        made,
        fabric,
        name=described.name,
        notes=described.notes + tuple(desk.unjoined_sockets()),
        sources={**described.sources, **desk.sources},
    )
    if described.storage:
        joined = SharedStorage(**desk.given["storage"]).join(joined)
    library = desk.given["communication"]
    told = {"inside": library["node"].residual, "between": library["network"].residual}
    residuals = {where: residual for where, residual in told.items() if residual is not None}
    return require_sound(replace(joined, protocols=protocols(**library), residuals=residuals))


def _kinds(card: Card, described: TopologyCard, desk: _Desk) -> Iterator[_Kind]:
    """The kinds of nodes of a card: its one, or those of its mix."""
    if not described.mix:
        yield _Kind(prefix="", card=card, count=described.nodes, node=described.node, host=described.host, ports={})
    elif described.node or described.host:
        rule = "has no place beside mix: the node and the host of each kind stand there"
        for key in ("node", "host"):
            if getattr(described, key):
                desk.faults.append(Fault(key=key, value=sorted(getattr(described, key)), rule=rule))
    for i, entry in enumerate(described.mix):
        with collect(desk.faults):
            yield _entry(card, f"mix.{i}.", entry)


def _entry(card: Card, prefix: str, entry: Mapping[str, Any]) -> _Kind:
    """One entry of a mix: a card's nodes, or tables of its own."""
    faults = [
        Fault(key=f"{prefix}{key}", value=value, rule="is not a key here", nearest=nearest_name(key, _ENTRY))
        for key, value in entry.items()
        if key not in _ENTRY
    ]
    count = entry.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        rule = "must be a whole number of nodes, at least 1"
        faults.append(Fault(key=f"{prefix}count", value=count, rule=rule, nearest=1))
    if ("topology" in entry) == ("node" in entry):
        rule = "must have either the topology whose nodes it takes, or a node of its own"
        faults.append(Fault(key=prefix.rstrip("."), value=sorted(entry), rule=rule))
    if faults:
        raise BadInput(faults)
    ports = {key: entry[key] for key in _PORTS if key in entry}
    if "topology" not in entry:
        tables = {"node": entry["node"], "host": entry.get("host", {})}
        return _Kind(prefix=prefix, card=card, count=int(count or 0), **tables, ports=ports)
    try:
        other = read_card("topology", entry["topology"], beside=card.path)
    except BadInput as error:
        raise BadInput(replace(fault, key=f"{prefix}topology") for fault in error.faults) from None
    named = build(other, TopologyCard)
    if named.mix:
        rule = "is a mix itself: give the topology of one kind of node"
        raise BadInput([Fault(key=f"{prefix}topology", value=entry["topology"], rule=rule)])
    ports = {**{key: named.fabric[key] for key in _PORTS if key in named.fabric}, **ports}
    host = {**named.host, **entry.get("host", {})}
    return _Kind(prefix=prefix, card=other, count=int(count or 0), node=named.node, host=host, ports=ports)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Desk:
    """Tables that have been read, with their parts, and what is wrong with them.

    Parameters
    ----------
    faults : list[Fault]
    sources : dict[str, str]
        of the parts, by dotted name
    given : dict[str, dict[str, Any]]
        key of a table -> arguments of its builders
    """

    faults: list[Fault]
    sources: dict[str, str]
    given: dict[str, dict[str, Any]]

    def read(
        self,
        key: str,
        card: Card,
        table: Mapping[str, Any],
        *targets: Callable[..., Any],
        supplied: set[str] | None = None,
    ) -> None:
        """Read a table for the builders that take its values."""
        values = {name: value for name, value in table.items() if name != "build"}
        parts: dict[str, Any] = {}
        with collect(self.faults):
            wanted = {f"{key}.{name}": part for name, part in named_parts(values, targets).items()}
            parts = load_parts(wanted, beside=card.path)
        with collect(self.faults):
            read = read_section(card, key, values, targets, supplied or ())
            self.given[key] = {name: parts.get(f"{key}.{name}", value) for name, value in read.items()}
        for where, part in parts.items():
            self.sources.update({f"{where}.{name}": source for name, source in part.sources.items()})

    def unjoined_sockets(self) -> Iterator[str]:
        """A sentence for each kind of node that has several sockets and no link between them."""
        for key, host in self.given.items():
            several = (key == "host" or key.endswith(".host")) and host.get("num_sockets", 1) > 1
            if several and host.get("socket_link") is None:
                yield f"{key}.socket_link: not given: sockets of a node reach each other without limit"

    def node(self, kind: _Kind) -> Callable[..., Node] | None:
        """Read a kind's tables; its builder, None when there is none."""
        make: Callable[..., Node] | None = None
        with collect(self.faults):
            make = find_builder(f"{kind.prefix}node.build", kind.node.get("build"), NODES)
            self.read(f"{kind.prefix}node", kind.card, kind.node, make, supplied={"host"})
            if "host" in parameters(make):
                self.read(f"{kind.prefix}host", kind.card, kind.host, Host)
            elif kind.host:
                rule = f"has no place: {kind.node['build']} lays out its own host"
                for name, value in kind.host.items():
                    self.faults.append(Fault(key=f"{kind.prefix}host.{name}", value=value, rule=rule))
        if kind.ports:
            self.read(kind.prefix.rstrip("."), kind.card, kind.ports, Ports.spread, supplied={"num_gpus"})
        return make

    def kind(self, kind: _Kind, make: Callable[..., Node]) -> NodeKind:
        """Build a kind of node."""
        host = f"{kind.prefix}host"
        with_host = {"host": Host(**self.given[host])} if host in self.given else {}
        node = make(**self.given[f"{kind.prefix}node"], **with_host)
        ports = self.ports(kind.prefix.rstrip("."), node.num_gpus) if kind.ports else None
        return NodeKind(node=node, count=kind.count, ports=ports)

    def ports(self, key: str, num_gpus: int) -> Ports:
        """The ports of a node of so many GPUs; what they are made of leaves the table."""
        table = self.given[key]
        mine = {name: table.pop(name) for name in parameters(Ports.spread) & set(table)}
        return Ports.spread(**mine, num_gpus=num_gpus)


def _widest(kinds: list[NodeKind]) -> Ports:
    """Ports that the fabric is laid out for: as many, of as many links and as fast as any kind of node has."""
    ports = [kind.ports for kind in kinds if kind.ports is not None]
    if len(ports) < len(kinds):
        lacking = next(i for i, kind in enumerate(kinds) if kind.ports is None)
        rule = "must be given: the nodes are joined by a fabric"
        raise BadInput([Fault(key=f"mix.{lacking}.nic", value=None, rule=rule)])
    if len(ports) == 1:
        return ports[0]
    fastest = max((p.nic for p in ports), key=lambda nic: nic.payload_bandwidth)
    count, num_links = max(p.count for p in ports), max(p.num_links for p in ports)
    return Ports(nic=fastest, of_gpu=tuple(range(count)), num_links=num_links)
