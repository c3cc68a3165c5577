"""What the settings of a point name, loaded: a model or a graph, a topology, a profile."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from clustersim.faults import Fault, collect
from clustersim.library.graph import load_graph
from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS
from clustersim.library.model import load_model
from clustersim.library.topologies import load_topology
from clustersim.study.by_profile import by_profile
from clustersim.topology.topology import Topology
from clustersim.workload.graph import Graph
from clustersim.workload.model import Model

__all__ = ["Inputs", "load_inputs"]

_FABRIC = tuple(key for key in KEYS if key.startswith(("fabric", "node.", "host.", "storage.", "communication.")))
_TOPOLOGY = ("nodes", *_FABRIC, "nics_per_node")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Inputs:
    """What was loaded, and what could not be.

    Parameters
    ----------
    model, graph, topology : optional
        None where it is not named, or bad
    num_devices : int
        0 where it is not known: a legal number would ask for rules that nobody broke
    profile : Mapping[str, Any]
        what the profile says of settings that the job leaves open, by dotted name
    notes : tuple[str, ...]
        what the readers of the files had to say
    faults : tuple[Fault, ...]
        of all of them
    """

    model: Model | None
    graph: Graph | None
    topology: Topology | None
    num_devices: int
    profile: Mapping[str, Any]
    notes: tuple[str, ...]
    faults: tuple[Fault, ...]


def load_inputs(setup: JobSetup, refused: Collection[str], trained: str, cluster: Topology | None = None) -> Inputs:
    """Load what can be.

    Parameters
    ----------
    setup : JobSetup
    refused : Collection[str]
        settings that are not legal by themselves
    trained : {"model", "graph"}
    cluster : Topology, optional
        that these settings are known to make
    """
    faults: list[Fault] = []
    notes: list[str] = []
    model: Model | None = None
    graph: Graph | None = None
    topology = cluster
    if trained == "graph" and setup.value("graph") is not None:
        with collect(faults):
            graph = load_graph(setup.value("graph"))
    elif trained == "model" and setup.value("model") is not None:
        with collect(faults), _noted(notes):
            model = load_model(setup.value("model"))
    if topology is None and setup.value("topology") is not None:
        with collect(faults):
            given = {key: setup.values[key] for key in _TOPOLOGY if key in setup.values}
            topology = load_topology(setup.value("topology"), **given)
    # An illegal number stands for what is not known: it leaves out the rules that need it.
    num_devices = topology.num_devices if topology and "nodes" not in refused else 0
    profile: dict[str, Any] = {}
    if setup.value("profile") is not None:
        with collect(faults):
            profile = by_profile(setup, refused, topology, num_devices)
    return Inputs(
        model=model,
        graph=graph,
        topology=topology,
        num_devices=num_devices,
        profile=profile,
        notes=tuple(notes),
        faults=tuple(faults),
    )


@contextmanager
def _noted(notes: list[str]) -> Iterator[None]:
    """Note what a reader warns of, for the result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    notes += [str(warning.message) for warning in caught]
