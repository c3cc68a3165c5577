"""A cluster from what a user typed: a card, and settings that change it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clustersim.topology.topology import Topology

__all__ = ["load_cluster"]


def load_cluster(name: str, settings: Sequence[str] = ()) -> Topology:
    """Load a topology.

    Parameters
    ----------
    name : str
        a card or a file
    settings : Sequence[str]
        KEY=VALUE of what a topology is made from: nodes, NICs, its fabric, the inside of its nodes

    Raises
    ------
    BadInput
        with every fault of the settings, or of the topology that they make
    """
    from clustersim.faults import BadInput, Fault, nearest_name
    from clustersim.library.settings import read_settings
    from clustersim.library.topologies import load_topology
    from clustersim.study.cluster import CLUSTER_KEYS

    values, faults = read_settings(settings)
    legal = [key for key in CLUSTER_KEYS if not key.startswith("perturb.")]
    for key, value in values.items():
        if key not in legal:
            rule = "does not change what a topology is made from"
            faults.append(Fault(key=key, value=value, rule=rule, nearest=nearest_name(key, legal)))
    if faults:
        raise BadInput(faults)
    return load_topology(name, **values)
