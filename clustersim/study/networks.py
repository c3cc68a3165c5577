"""What is known of the networks that measurements ran over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from clustersim.library.part import load_part
from clustersim.library.topologies import fabric_of, host_of
from clustersim.study.published_network import read_network

__all__ = ["STATED", "UNKNOWN", "RowNetwork", "network_of"]

UNKNOWN = ("assumed", "not stated", "not read", "effectively")
"""Words in the description of a network that nobody knows: such rows, and those whose description cannot be read, are
predicted and calibrate nothing."""

STATED = ("4 NICs per node in use",)
"""Words of those that the measurement's own thread describes, though the row does not, and that the card has:
NVIDIA/nccl issue 1411, four ConnectX-7 with 194 GB/s together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowNetwork:
    """What stands for the network between the nodes of a measurement.

    Parameters
    ----------
    known : bool
        whether the words of the row say what it is
    changes : Mapping[str, object]
        keys of the topology card in which it differs from the card's own
    ports_told : bool
        whether the words tell of the ports of a node, and not of one port alone
    told : str
        the same as a sentence, with the words
    """

    known: bool
    changes: Mapping[str, object] = field(default_factory=dict)
    ports_told: bool = False
    told: str = ""


def network_of(text: str, card: str, changes: Mapping[str, object], gpus_per_node: int) -> RowNetwork:
    """The network that words describe.

    Parameters
    ----------
    text : str
        between nodes, as published; empty where nothing is
    card : str
        topology that stands for the hardware
    changes : Mapping[str, object]
        keys in which the hardware differs from the card
    gpus_per_node : int
    """
    network, fabric = read_network(text, gpus_per_node), fabric_of(card, **changes)
    bare = network.port_gbits if network and fabric and network.node_gbits is None else None
    if network and bare and bare > _largest_port(card, changes, str(fabric["nic"])):
        network = replace(network, node_gbits=bare, port_gbits=None)
    found = network.changes(fabric, gpus_per_node) if network and fabric else None
    words = f"published as {text!r}"
    if network is None or found is None:
        stated = any(of in text for of in STATED)
        return RowNetwork(known=stated, told=f"that of {card} is taken; {words}")
    if any(of in text for of in UNKNOWN):
        return RowNetwork(known=False, changes=found, told=f"the ports are not certain; {words}")
    if network.node_gbits is None:
        return RowNetwork(known=True, changes=found, told=f"as many ports a node as {card} has; {words}")
    return RowNetwork(known=True, changes=found, ports_told=True, told=f"that of {card} with ports as {words}")


def _largest_port(card: str, changes: Mapping[str, object], nic: str) -> float:
    """What one port of a node can be [Gb/s]: the card's own, or all that its PCI Express x16 carries.

    More, said of nothing, is said of a node: 400 Gb/s beside A100, whose PCIe 4.0 carries 252.
    """
    own = load_part("nic", nic).bandwidth
    link = host_of(card, **changes).get("link")
    return max(own, load_part("link", str(link)).bandwidth if link else own) * 8 / 1e9
