"""Settings of what joins nodes, and of links, that changed nothing."""

from __future__ import annotations

from clustersim.faults import BadInput
from clustersim.library.keys import KEYS
from clustersim.library.topologies import load_topology
from clustersim.study.given_setting import GivenSetting
from clustersim.study.routes import pairs_apart, same_ways

__all__ = ["apart", "failed", "links", "same_routes", "sums_in_switches"]


def same_routes(case: GivenSetting) -> str | None:
    """What joins nodes does nothing when no group needs it, or when the routes are those of the cluster without it."""
    if case.topology.num_nodes == 1:
        return "one node has nothing to join"
    pairs = pairs_apart(case.topology, case.job)
    if pairs is None:
        return None
    if not len(pairs):
        return "no process group spans two nodes"
    keys = ("nodes", "nics_per_node", *(key for key in KEYS if key.startswith("fabric")))
    others = {key: case.setup.values[key] for key in keys if key in case.setup.values and key != case.key}
    try:
        plain = load_topology(case.setup.value("topology"), **others)
    except BadInput:  # the others need it
        return None
    same = same_ways(case.topology, plain, pairs)
    return "the routes of every process group are the same without it" if same else None


def apart(case: GivenSetting) -> str | None:
    """What NCCL costs between nodes does nothing when no group needs them."""
    pairs = pairs_apart(case.topology, case.job)
    return None if pairs is None or len(pairs) else "no process group spans two nodes"


def sums_in_switches(case: GivenSetting) -> str | None:
    """Switches that add up do nothing when no collective runs through them."""
    summed = case.result.collectives["algorithm"].isin(("sharp", "collnet_chain"))
    return None if summed.any() else "no collective was fastest with the sums of the network's switches"


def links(case: GivenSetting) -> str | None:
    """A link that differs from its like is a class of its own, so it is seen under its own name when it is used."""
    names = set(case.value)
    if isinstance(case.value, dict) and all(factor == 1 for factor in case.value.values()):
        return "every factor is 1"
    used = {rates.name for rates in case.result.usage}
    return None if names & used else f"nothing crosses {', '.join(sorted(names))}"


def failed(case: GivenSetting) -> str | None:
    """As a slow link; what has failed whole is crossed by nobody, so the routes that led over it tell."""
    reason = links(case)
    left = case.topology.without_links(case.value)
    if reason is None or left.router is case.topology.router:
        return reason
    pairs = pairs_apart(case.topology, case.job)
    if pairs is None:
        return None
    return reason if same_ways(case.topology, left, pairs) else None
