"""Faults of settings that no rule over a plan knows: what is absent, what is for other jobs, ranks and links."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import gcd
from typing import Any

from clustersim.engine.perturb import Perturbation, perturbed
from clustersim.faults import Fault, collect
from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS, workload_of
from clustersim.topology.topology import Topology
from clustersim.workload.case import Case

__all__ = ["absent", "as_nodes", "of_other_jobs", "perturb_faults"]


def absent(setup: JobSetup, refused: Collection[str], trained: str) -> list[Fault]:
    """Settings that jobs which train a model or a graph must have, and that were not given."""
    asked = [key for key, about in KEYS.items() if about.required and workload_of(key) in ("", trained)]
    missing = [key for key in asked if setup.value(key) is None and key not in refused]
    return [Fault(key=key, value=None, rule="must be given", nearest=KEYS[key].usual) for key in missing]


def of_other_jobs(setup: JobSetup, trained: str) -> Iterator[Fault]:
    """Settings that were given and are for jobs that train something else."""
    for key, value in setup.values.items():
        if workload_of(key) not in ("", trained):
            rule = f"is for jobs that train a {workload_of(key)}; this one trains a {trained}"
            yield Fault(key=key, value=value, rule=rule)


def as_nodes(fault: Fault, topology: Topology | None, case: Case) -> Fault:
    """A fault of the number of devices as one of the number of nodes, which is what users set.

    The nearest are nodes that some number of replicas fills, where no nodes have just as many GPUs as are asked for.
    """
    if fault.key != "num_devices" or topology is None:
        return fault
    each, nodes = topology.num_devices // topology.num_nodes, topology.num_nodes
    if isinstance(fault.nearest, int) and fault.nearest % each == 0:
        nearest = fault.nearest // each
    else:
        step = case.ranks_per_replica // gcd(case.ranks_per_replica, each)
        nearest = max(step, round(nodes / step) * step)
    rule = f"of {each} GPUs: {topology.num_devices} {fault.rule}"
    return Fault(key="nodes", value=nodes, rule=rule, nearest=nearest)


def perturb_faults(perturb: Mapping[str, Any], topology: Topology) -> list[Fault]:
    """Links and ranks that there are not."""
    found: list[Fault] = []
    with collect(found):
        perturbed(topology, Perturbation.parse(perturb))
    last = topology.num_devices - 1
    for rank in perturb.get("slow_ranks", ()):
        if rank > last:
            rule = f"must be a rank from 0 to {last}"
            found.append(Fault(key="perturb.slow_ranks", value=rank, rule=rule, nearest=last))
    return found
