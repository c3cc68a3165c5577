"""The network between nodes as people write it, "8x200 Gb/s HDR IB per node" -> what of a card's fabric differs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from clustersim.library.part import load_part

__all__ = ["PublishedNetwork", "read_network"]

_KINDS = {
    "infiniband": r"infiniband|\bib\b|[ehnx]dr",
    "roce": r"roce",
    "efa": r"\befa",
    "omni-path": r"omni-?path|\bopa\b",
    "slingshot": r"slingshot",
    "ethernet": r"ethernet|\bgbe\b|\d+gbe|\btcp\b",
    "rdma": r"rdma|\bcx-?\d|connectx|\bnics?\b",
}
"""Words of a kind of network, the first that fits. "rdma": as the card's own, whatever that is."""

_NICS = {
    "infiniband": {100: "connectx-5", 200: "connectx-6", 400: "connectx-7", 800: "connectx-8"},
    "efa": {100: "efa-v2", 200: "efa-v3", 400: "efa-v4"},
    "omni-path": {100: "omni-path-100"},
    "slingshot": {200: "slingshot-11"},
    "ethernet": {10: "ethernet-10g", 25: "ethernet-25g", 100: "ethernet-100g"},
}
"""Port [Gb/s] of a kind -> its card; RoCE runs on those of InfiniBand."""

_SWITCHES = {
    "infiniband": {100: "switch-ib2", 200: "quantum", 400: "quantum-2", 800: "quantum-x800"},
    "roce": {100: "ethernet-100g", 200: "ethernet-400g", 400: "ethernet-400g", 800: "spectrum-4"},
    "omni-path": {100: "omni-path-100"},
    "slingshot": {200: "slingshot-rosetta"},
    "ethernet": {10: "ethernet-10g", 25: "ethernet-25g", 100: "ethernet-100g"},
}
_GENERATIONS = {"edr": 100, "hdr": 200, "ndr": 400, "xdr": 800}
"""InfiniBand's names of a port of four lanes [Gb/s]; HDR100 is half of one."""

_INSIDE = re.compile(r"nvlink|nvswitch|xgmi|infinity|pcie|c2c", re.I)
_COUNTS = {"one": 1, "single": 1, "two": 2, "four": 4, "eight": 8}
_TIMES = rf"(?<![-\dx×.])(?:(?P<count>\d+)\s*[x×]\s*|(?P<word>{'|'.join(_COUNTS)})\s+)?"
_RATE = re.compile(_TIMES + r"(?P<rate>\d+(?:\.\d+)?)\s*(?P<unit>[GT]b(?:/s|ps|it/s|E)\b)")
_GENERATION = re.compile(_TIMES + r"(?P<name>edr|hdr|ndr|xdr)(?P<rate>\d+)?\b", re.I)
_PRODUCT = re.compile(r"\b(?P<count>\d+)\s*[x×]\s*(?P<rate>\d+)\b")
_LARGEST_PORT = 800
"""[Gb/s]; more is said of a node."""

_PORTS_A_GPU = 4
"""Most that a published machine has: AWS' p5, 32 ports on 8 GPUs (EC2 User Guide, EFA on accelerated instances)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedNetwork:
    """What words say about the network of a node.

    Parameters
    ----------
    kind : str
        "infiniband", "roce", "efa", "omni-path", "slingshot", "ethernet", or "rdma" where no word tells it
    node_gbits : float, optional
        of all ports of a node [Gb/s]
    port_gbits : float, optional
        of one port [Gb/s]
    """

    kind: str
    node_gbits: float | None = None
    port_gbits: float | None = None

    def changes(self, fabric: Mapping[str, object], gpus_per_node: int) -> dict[str, object] | None:
        """Keys of a topology card, and what differs from its ``fabric``; None where no card of a part has such ports.

        Where only the sum of the ports is said, they are the card's own if these divide it, or else those of which
        there are most nearly as many. Where only one port is said, there are as many as on the card. More ports than
        any machine has are read as nothing.
        """
        own, own_ports = str(fabric["nic"]), int(str(fabric["nics_per_node"]))
        kind = next((k for k, nics in _NICS.items() if own in nics.values()), "") if self.kind == "rdma" else self.kind
        fits, most = [], max(own_ports, _PORTS_A_GPU * gpus_per_node)
        for gbits, nic in _NICS.get("infiniband" if kind == "roce" else kind, {_gbits(own): own}).items():
            ports = own_ports if self.node_gbits is None else self.node_gbits / gbits
            whole = ports >= 1 and (gpus_per_node % ports == 0 or ports % gpus_per_node == 0)
            if whole and ports <= most and self.port_gbits in (None, gbits):
                fits.append((nic != own, abs(ports - own_ports), gbits, nic, int(ports)))
        if not fits:
            return None
        *_, gbits, nic, num_ports = min(fits)
        switch = _SWITCHES.get(self.kind, {}).get(gbits, fabric["switch"])
        wanted = {"nic": nic, "nics_per_node": num_ports, "switch": switch}
        other = {f"fabric.{key}": value for key, value in wanted.items() if fabric.get(key) != value}
        return {**other, "communication.network": "efa"} if self.kind == "efa" else other


def read_network(text: str, gpus_per_node: int) -> PublishedNetwork | None:
    """Read what is published about the network between nodes.

    Parameters
    ----------
    text : str
        pieces between semicolons; those that only tell of links inside a node are passed over
    gpus_per_node : int

    Returns
    -------
    PublishedNetwork or None
        None where no rate is told

    Examples
    --------
    >>> read_network("NVLink3; 4x200 Gb/s HDR IB per node", 8)
    PublishedNetwork(kind='infiniband', node_gbits=800.0, port_gbits=200.0)
    >>> read_network("EFA 3200 Gb/s per node", 8)
    PublishedNetwork(kind='efa', node_gbits=3200.0, port_gbits=None)
    """
    for piece in text.split(";"):
        kind = next((kind for kind, words in _KINDS.items() if re.search(words, piece, re.I)), None)
        rate = _rate(piece)
        if rate is None or (kind is None and _INSIDE.search(piece)):
            continue
        count, gbits = rate
        if not gbits or count == 0:
            return None
        kind = kind or "rdma"
        if count is not None:
            return PublishedNetwork(kind=kind, node_gbits=count * gbits, port_gbits=gbits)
        if re.search(r"(per|a|each|/)\s*(gpu|gcd|accelerator)", piece, re.I):
            return PublishedNetwork(kind=kind, node_gbits=gpus_per_node * gbits, port_gbits=gbits)
        if re.search(r"node|server|host", piece, re.I) or gbits > _LARGEST_PORT or kind == "efa":
            return PublishedNetwork(kind=kind, node_gbits=gbits)
        return PublishedNetwork(kind=kind, port_gbits=gbits)
    return None


def _rate(piece: str) -> tuple[int | None, float] | None:
    """How many ports, where it is said, and Gb/s of each, or of all of them."""
    found = _RATE.search(piece)
    if found is None:
        named = _GENERATION.search(piece)
        if named is None:
            return None
        return _count(named), float(named["rate"] or _GENERATIONS[named["name"].lower()])
    product = _PRODUCT.search(piece)
    gbits = float(found["rate"]) * (1000 if found["unit"].startswith("T") else 1)
    if _count(found) is None and product and int(product["count"]) * float(product["rate"]) == gbits:
        return int(product["count"]), float(product["rate"])
    return _count(found), gbits


def _count(found: re.Match[str]) -> int | None:
    if found["word"] is not None:
        return _COUNTS[found["word"]]
    return None if found["count"] is None else int(found["count"])


def _gbits(nic: str) -> int:
    return round(load_part("nic", nic).bandwidth * 8 / 1e9)
