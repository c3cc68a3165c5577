"""A cluster from settings, with its slow and failed links: what a collective is asked of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clustersim.engine.perturb import Perturbation, perturbed
from clustersim.faults import Fault, nearest_name
from clustersim.library.keys import KEYS
from clustersim.library.topologies import load_topology
from clustersim.topology.topology import Topology

__all__ = ["CLUSTER_KEYS", "cluster_of", "unread"]

_LINKS = ("perturb.slow_links", "perturb.failed_links")

CLUSTER_KEYS = (
    "nodes",
    "nics_per_node",
    *(key for key in KEYS if key.startswith(("fabric", "node.", "communication."))),
    *_LINKS,
)
"""Settings that change what collectives meet; all others are of jobs, or of devices and drives."""


def unread(settings: Mapping[str, Any]) -> list[Fault]:
    """A fault for each setting that changes nothing a collective meets."""
    faults = []
    for key, value in settings.items():
        if key.startswith("algorithms."):
            rule = "is a setting of runs; a collective takes --algorithm and --protocol"
            faults.append(Fault(key=key, value=value, rule=rule, nearest="--algorithm"))
        elif key not in CLUSTER_KEYS:
            nearest = nearest_name(key, CLUSTER_KEYS)
            faults.append(Fault(key=key, value=value, rule="is read by no collective", nearest=nearest))
    return faults


def cluster_of(topology: str, settings: Mapping[str, Any]) -> Topology:
    """Load a topology and slow or cut its links.

    Parameters
    ----------
    topology : str
        a card or a file
    settings : Mapping[str, Any]
        legal values by key, as :func:`clustersim.library.settings.read_values` gives them; those that are not of
        :data:`CLUSTER_KEYS` are not read

    Raises
    ------
    BadInput
        with every fault of the card, of what replaces its values, or of the links named
    """
    given = {key: value for key, value in settings.items() if key in CLUSTER_KEYS and key not in _LINKS}
    links = {key.removeprefix("perturb."): settings[key] for key in _LINKS if key in settings}
    return perturbed(load_topology(topology, **given), Perturbation.parse(links))
