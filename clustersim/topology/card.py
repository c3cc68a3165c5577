"""A topology card: which builders make the node and the fabric, and with what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["TopologyCard"]


@dataclass(frozen=True, kw_only=True, slots=True)
class TopologyCard:
    """A cluster in names and numbers, of equal nodes or of several kinds.

    ``node`` and ``fabric`` each have a ``build``: a short name of :mod:`clustersim.topology.families` or a callable of
    one's own, ``"my_package.fabrics:butterfly"``. Their other keys are that builder's parameters, a part by the name of
    its card.

    Parameters
    ----------
    name : str
        card name, ``dgx-h100``
    node : Mapping[str, Any]
        what is inside one node; empty where there is a mix
    mix : tuple[Mapping[str, Any], ...]
        kinds of nodes on one fabric, in order: each with its ``count`` and either the ``topology`` whose nodes they
        are, or ``node`` and ``host`` of its own; and ``nic``, ``nics_per_node`` and ``nic_of`` where they are not that
        topology's
    host : Mapping[str, Any]
        sockets, PCIe and drives of a node, :class:`clustersim.topology.host.Host`; empty where the node's builder knows
        them by itself, as superchips do
    fabric : Mapping[str, Any]
        what joins the nodes; ``nic``, ``nics_per_node`` and ``nic_of`` (the port of each GPU, in order by default)
        stand here too. Empty for a machine without a network
    storage : Mapping[str, Any]
        a file system that all nodes share, :class:`clustersim.topology.storage.SharedStorage`; empty without one
    communication : Mapping[str, Any]
        what the communication library costs: ``node`` and ``network``, each by the name of a card
    nodes : int
        nodes unless the caller says otherwise
    notes : tuple[str, ...]
        what the card approximates, for the result's warnings
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``
    """

    name: str
    node: Mapping[str, Any] = field(default_factory=dict)
    mix: tuple[Mapping[str, Any], ...] = ()
    host: Mapping[str, Any] = field(default_factory=dict)
    fabric: Mapping[str, Any] = field(default_factory=dict)
    storage: Mapping[str, Any] = field(default_factory=dict)
    communication: Mapping[str, Any] = field(default_factory=dict)
    nodes: int = 1
    notes: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
