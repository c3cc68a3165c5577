"""GPUs joined by direct links without a switch: xGMI meshes, NVLink hybrid cube mesh, any matrix of link counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from clustersim.faults import BadInput, Fault
from clustersim.hardware.gpu import GPU
from clustersim.hardware.link import Link
from clustersim.topology.host import Host
from clustersim.topology.node import Layout, Node, Rows, square

__all__ = ["HYBRID_CUBE_MESH", "hybrid_cube_mesh", "nvlink_mesh", "xgmi_mesh"]

HYBRID_CUBE_MESH = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)
"""NVLinks between the eight V100s of a DGX-1, six a GPU, as ``nvidia-smi topo -m`` prints them on that machine."""


def hybrid_cube_mesh(*, gpu: GPU, link: Link, host: Host) -> Node:
    """The eight V100s of a DGX-1; see :data:`HYBRID_CUBE_MESH` for the links and :func:`xgmi_mesh` for the routes."""
    return _mesh(gpu, HYBRID_CUBE_MESH, link, host, kind="nvlink")


def nvlink_mesh(*, gpu: GPU, num_links: Sequence[Sequence[int]], link: Link, host: Host) -> Node:
    """GPUs joined by NVLinks without a switch: a quad GH200 node, NVLink bridges; see :func:`xgmi_mesh`."""
    return _mesh(gpu, num_links, link, host, kind="nvlink")


def xgmi_mesh(*, gpu: GPU, num_links: Sequence[Sequence[int]], link: Link, host: Host) -> Node:
    """GPUs joined by direct links.

    The parallel links from GPU a to GPU b are one resource, ``gpu{a}/xgmi.gpu{b}``. GPUs without a link between them
    are reached over as few others as possible, then over the widest links, then over the lowest numbers. NCCL does that
    over one intermediate GPU (path type NVB).

    Parameters
    ----------
    gpu : GPU
        card
    num_links : Sequence[Sequence[int]]
        links from GPU a to GPU b; symmetric, 0 on the diagonal
    link : Link
        one link
    host : Host
        sockets, host links, drives

    Raises
    ------
    BadInput
        when the matrix is not square or not symmetric, has a link from a GPU to itself, or leaves a GPU out of reach
    """
    return _mesh(gpu, num_links, link, host, kind="xgmi")


def _mesh(gpu: GPU, num_links: Sequence[Sequence[int]], link: Link, host: Host, *, kind: str) -> Node:
    _check(num_links)
    num_gpus = len(num_links)
    layout = Layout()
    row = {
        (a, b): int(
            layout.add(
                kind,
                f"gpu{a}/{kind}.gpu{b}",
                capacity=num_links[a][b] * link.payload_bandwidth,
                latency=link.latency,
                num_links=num_links[a][b],
            )
        )
        for a in range(num_gpus)
        for b in range(num_gpus)
        if num_links[a][b]
    }
    wiring = host.wire(layout, gpu, num_gpus)
    paths: list[list[Rows]] = [[() for _ in range(num_gpus)] for _ in range(num_gpus)]
    for a in range(num_gpus):
        for b, stops in enumerate(_widest_shortest(num_links, a)):
            if a < b:  # the way back is the same, so that routes are symmetric
                paths[a][b] = tuple(row[i, j] for i, j in pairwise(stops))
                paths[b][a] = tuple(row[j, i] for i, j in reversed(list(pairwise(stops))))
    return wiring.node(layout, square(paths))


def _widest_shortest(num_links: Sequence[Sequence[int]], source: int) -> list[tuple[int, ...]]:
    """GPUs on the way from ``source`` to each: fewest hops, then the widest narrowest link, then the lowest numbers."""
    ways: dict[int, tuple[float, tuple[int, ...]]] = {source: (-math.inf, (source,))}
    frontier = dict(ways)
    while frontier:
        found: dict[int, tuple[float, tuple[int, ...]]] = {}
        for stop, (narrowest, stops) in frontier.items():
            for b, count in enumerate(num_links[stop]):
                if count and b not in ways:
                    way = (max(narrowest, -count), (*stops, b))
                    found[b] = min(found.get(b, way), way)
        ways |= found
        frontier = found
    return [ways[b][1] for b in range(len(num_links))]


def _check(num_links: Sequence[Sequence[int]]) -> None:
    key = "node.num_links"
    num_gpus = len(num_links)
    if not num_gpus or any(len(row) != num_gpus for row in num_links):
        rule = f"must be a square matrix: one row and one column for each of {num_gpus} GPUs"
        raise BadInput([Fault(key=key, value=[len(row) for row in num_links], rule=rule)])
    matrix = np.array(num_links)
    faults = []
    if (matrix < 0).any():
        faults.append(Fault(key=key, value=int(matrix.min()), rule="must count links", nearest=0))
    for a in np.flatnonzero(np.diag(matrix)):
        rule = "must be 0: a GPU has no link to itself"
        faults.append(Fault(key=f"{key}[{a}][{a}]", value=int(matrix[a, a]), rule=rule, nearest=0))
    for a, b in zip(*np.nonzero(np.triu(matrix != matrix.T)), strict=True):
        rule = f"must equal the links the other way, {key}[{b}][{a}]"
        faults.append(Fault(key=f"{key}[{a}][{b}]", value=int(matrix[a, b]), rule=rule, nearest=int(matrix[b, a])))
    reached = np.eye(num_gpus, dtype=bool)[0]
    for _ in range(num_gpus):
        reached = reached | (matrix[reached] > 0).any(axis=0)
    if not faults and not reached.all():
        faults.append(Fault(key=key, value=np.flatnonzero(~reached).tolist(), rule="are GPUs that GPU 0 cannot reach"))
    if faults:
        raise BadInput(faults)
