"""Which collectives ran, how and why, read off the system: nothing is kept while the clock runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from clustersim.engine.system.group_block import GroupBlock
from clustersim.engine.system.system import System
from clustersim.trace.collectives import CollectiveRecord

__all__ = ["chosen"]


def chosen(system: System) -> list[CollectiveRecord]:
    """One record for each family, kind and size of collective, and way that some of the family's groups run it."""
    alike: dict[tuple[object, ...], CollectiveRecord] = {}
    for block in system.blocks:
        for record in _of_block(system, block):
            key = (
                *(record.job, record.axis, record.family, record.kind, record.nbytes),
                *(record.num_members, record.num_nodes, record.algorithm, record.protocol, record.num_channels),
            )
            other = alike.get(key)
            if other is not None:
                slower = record if record.alone_ns > other.alone_ns else other
                record = replace(
                    slower,
                    num_groups=record.num_groups + other.num_groups,
                    num_per_step=max(record.num_per_step, other.num_per_step),
                )
            alike[key] = record
    return list(alike.values())


def _of_block(system: System, block: GroupBlock) -> Iterator[CollectiveRecord]:
    cost, resources = block.cost, system.topology.resources
    axis, _, family = block.name.partition("/")
    period = system.jobs[block.job].period
    per_round = np.bincount(block.script, minlength=len(block.signatures))
    num_nodes = len(np.unique(system.topology.node_of[system.device[block.members[0]]]))
    for s, ((kind, nbytes, _), what) in enumerate(zip(block.signatures, block.traffic, strict=True)):
        for protocol in np.unique(cost.protocol[:, s]):
            groups = np.flatnonzero(cost.protocol[:, s] == protocol)
            slowest = int(groups[np.argmax(cost.ns[groups, s])])
            first, last = np.searchsorted(cost.group, [slowest, slowest + 1])
            rows, load = cost.row[first:last], cost.load[first:last, s]
            busiest = int(np.argmax(load / resources.capacity[rows])) if load.any() else -1
            yield CollectiveRecord(
                job=block.job,
                axis=axis,
                family=family,
                kind=kind,
                nbytes=nbytes,
                num_groups=len(groups),
                num_members=block.members.shape[1],
                num_nodes=num_nodes,
                algorithm=what.algorithm,
                protocol=str(protocol),
                num_channels=what.num_sms,
                alone_ns=int(cost.ns[slowest, s]),
                latency_ns=int(cost.latency_ns[slowest, s]),
                busiest_link=resources.name(int(rows[busiest])) if busiest >= 0 else "",
                busiest_link_nbytes=int(load[busiest]) if busiest >= 0 else 0,
                num_per_step=-(-int(per_round[s]) // period),
                slowest_group=f"{block.name}/{int(block.number[slowest])}",
                reason=block.reasons[s],
            )
