"""Settings of a job that trains a data-flow graph: how they go together on a cluster, and the job they make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from clustersim.faults import BadInput, Fault, nearest_name
from clustersim.study.messages import estimate_of
from clustersim.topology.topology import Topology
from clustersim.workload.graph import Graph, graph_step
from clustersim.workload.job import Job

__all__ = ["MOST_DEVICES", "find_graph_faults", "graph_job"]

MOST_DEVICES = 256
"""GPUs of one worker: the routes between each two of them are looked at."""


PLACEMENTS = ("column", "list")
"""Those of :func:`clustersim.workload.graph.graph_step` that have a name."""


def find_graph_faults(graph: Graph, values: Mapping[str, Any], topology: Topology) -> Iterator[Fault]:
    """What does not go together.

    Parameters
    ----------
    graph : Graph
    values : Mapping[str, Any]
        by the keys of :data:`clustersim.library.keys.KEYS`, each legal by itself, None where it is open; a callable in
        place of the name of one
    topology : Topology
    """
    num_gpus = topology.num_devices
    devices, replicas = values["graph.devices"], values["graph.replicas"]
    most = min(num_gpus, MOST_DEVICES)
    if devices > most:
        rule = f"must be at most {most}; the cluster has {num_gpus} GPUs"
        yield Fault(key="graph.devices", value=devices, rule=rule, nearest=most)
    elif replicas is None and num_gpus % devices:
        rule = f"must divide the {num_gpus} GPUs, or graph.replicas must be given"
        nearest = max(n for n in range(1, devices) if num_gpus % n == 0)
        yield Fault(key="graph.devices", value=devices, rule=rule, nearest=nearest)
    elif replicas is not None and replicas * devices > num_gpus:
        rule = f"of {devices} GPUs must fit on {num_gpus} GPUs"
        yield Fault(key="graph.replicas", value=replicas, rule=rule, nearest=num_gpus // devices)
    placement = values["graph.placement"]
    if isinstance(placement, str) and placement not in PLACEMENTS:
        rule = f"must be {', '.join(PLACEMENTS)} or my_package.module:function"
        yield Fault(key="graph.placement", value=placement, rule=rule, nearest=nearest_name(placement, PLACEMENTS))
    elif placement == "column" and devices > 1 and all(op.device is None for op in graph.ops):
        rule = f"asks for a column device, which the table of {graph.name} does not have"
        yield Fault(key="graph.placement", value="column", rule=rule, nearest="list")
    order, each = values["graph.gpu_order"], num_gpus // topology.num_nodes
    if order is not None and sorted(order) != list(range(each)):
        rule = f"must name each GPU of a node from 0 to {each - 1} once"
        yield Fault(key="graph.gpu_order", value=order, rule=rule, nearest=list(range(each)))


def graph_job(graph: Graph, values: Mapping[str, Any], topology: Topology) -> Job:
    """One step of the graph on a cluster.

    Ops of workers with more than one GPU are placed and ordered by what messages take between the GPUs of the first
    worker, see :func:`clustersim.study.messages.estimate_of`; on one GPU they run in the order of the table.

    Parameters
    ----------
    graph : Graph
    values : Mapping[str, Any]
        without faults
    topology : Topology

    Raises
    ------
    BadInput
        with every fault of the placement
    """
    devices, placement = values["graph.devices"], values["graph.placement"]
    replicas = values["graph.replicas"] or topology.num_devices // devices
    seats = _seats(values["graph.gpu_order"], topology)[: devices * replicas]
    try:
        job = graph_step(
            graph,
            batch=values["graph.batch"],
            devices=devices,
            replicas=replicas,
            placement="column" if devices == 1 and placement == "list" else placement,
            estimate=estimate_of(topology, devices=seats[:devices]) if devices > 1 else None,
            bucket_nbytes=values["graph.bucket_bytes"],
            update_nbytes=values["graph.update_bytes"],
            device_of_rank=seats,
        )
    except BadInput as error:
        raise BadInput([_as_setting(fault) for fault in error.faults]) from None
    idle = topology.num_devices - len(seats)
    return replace(job, notes=(*job.notes, f"{idle} of {topology.num_devices} GPUs have no worker")) if idle else job


def _seats(order: Sequence[int] | None, topology: Topology) -> list[int]:
    """Device of each rank: node by node, in ``order`` inside each."""
    each = topology.num_devices // topology.num_nodes
    inside = range(each) if order is None else order
    return [node * each + gpu for node in range(topology.num_nodes) for gpu in inside]


def _as_setting(fault: Fault) -> Fault:
    """A fault of an argument as one of its setting; those of the table's ops are named as they are."""
    return replace(fault, key="graph.placement") if fault.key == "placement" else fault
