"""Runs of nccl-tests on a cluster that the user names, as measured rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from clustersim.faults import BadInput, Fault
from clustersim.library.topologies import communication_of
from clustersim.readers.collective_rows import CollectiveRow
from clustersim.readers.nccl_log import NcclLog
from clustersim.study.cluster import cluster_of
from clustersim.study.measured import Clock, Measured
from clustersim.study.networks import RowNetwork

__all__ = ["place_logs"]


def place_logs(logs: Iterable[tuple[Path, NcclLog]], topology: str, settings: Mapping[str, Any]) -> list[Measured]:
    """Rows of each log on the topology: out of place where it has them, else in place.

    The ranks take the first GPUs of as many nodes as the log has hosts, equally many on each; where it names no host,
    as many as fit on a node.

    Parameters
    ----------
    logs : iterable of (Path, NcclLog)
        with the file that each was read from
    topology : str
        a card or a file
    settings : Mapping[str, Any]
        values of its keys; ``nodes`` follows from the logs

    Raises
    ------
    BadInput
        with every fault of the topology, and every log whose ranks do not fit its nodes
    """
    size = cluster_of(topology, {**settings, "nodes": 1}).num_devices
    own_node, own_network = communication_of(topology)
    node = str(settings.get("communication.node", own_node))
    network = str(settings.get("communication.network", own_network))
    placed: list[Measured] = []
    faults = []
    for path, log in logs:
        num_nodes = log.num_nodes or -(-log.num_ranks // size)
        if size > 16:
            num_nodes = -(-log.num_ranks // size)  # hosts are boards of one scale-up domain
        per_node, left = divmod(log.num_ranks, num_nodes)
        if left or per_node > size:
            rule = f"ranks on {num_nodes} nodes do not fit {topology}, which has {size} GPUs a node"
            faults.append(Fault(file=str(path), key="ranks", value=log.num_ranks, rule=rule, nearest=size * num_nodes))
            continue
        cluster = cluster_of(topology, {**settings, "nodes": num_nodes})
        devices = (size * np.arange(num_nodes)[:, None] + np.arange(per_node)).reshape(-1)
        for row in log.out_of_place or log.in_place:
            if not row.nbytes or not row.time_us:
                continue
            one = Measured(
                row=_row(path, log, row.nbytes, row.time_us, num_nodes, per_node, row.line, network),
                card=topology,
                topology=cluster,
                devices=devices,
                node=node,
                network=network,
                algorithm=None,
                clock=Clock(),
                between=RowNetwork(known=True),  # the user says what it ran on
            )
            placed.append(one)
    if faults:
        raise BadInput(faults)
    return placed


def _row(
    path: Path, log: NcclLog, nbytes: int, time_us: float, num_nodes: int, per_node: int, line: int, network: str
) -> CollectiveRow:
    return CollectiveRow(
        line=line,
        id=f"{path.name}:{line}",
        group=f"{path.name}:{log.line}",
        source=path.name,
        hardware=log.device,
        intra_link="",
        inter_link=network,
        algo="",
        nccl_version=log.version,
        confidence="",
        notes="",
        collective=log.collective,
        num_ranks=log.num_ranks,
        num_nodes=num_nodes,
        ranks_per_node=per_node,
        nbytes=nbytes,
        time_us=time_us,
        algbw=None,
        busbw=None,
    )
