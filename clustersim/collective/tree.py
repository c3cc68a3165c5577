"""Double binary tree: two trees over the nodes, half the payload each; steps that grow with the logarithm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.channels import collective_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import flows_on_busiest_link, memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic

__all__ = ["directed", "double_tree", "tree"]

KINDS = ("all_reduce", "broadcast", "reduce")


def tree(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of the double binary tree: chains inside nodes, two trees between them.

    **Bytes.** With c lanes (members that every node has) there are c pairs of trees with S/c a pair. Lane j joins the
    j-th members of all nodes by the two trees, S/2c each; inside a node a chain j, j+1, …, j-1 carries S/c. Reduce
    goes up (child to parent, chain to its head), broadcast goes down, all-reduce does both. A node that is inside one
    tree is a leaf of the other, so a NIC sends and receives at most 2·S/c in an all-reduce: as much as a ring's.
    On one node the trees are chains and each edge i → i+1 and back carries (m-1)/m·S. For broadcast and reduce all
    chains on the root's node start at the root, position 0. On a mesh each chain is divided among the R rings inside
    its node (``shape.rings``): S/(cR) along each, from the same head.

    **Rounding.** Each flow is rounded up to whole bytes a lane and ring.

    **Steps.** Down the chain and down the deeper tree, there and back for all-reduce: 2(m-1) inside nodes and
    2·ceil(log2 N) between N nodes, as in NCCL's tuning model (``src/graph/tuning.cc``).

    NCCL roots its second tree at another node and may put a tree's children on another GPU than its parent; the
    bytes of the busiest NIC are the same.

    Parameters
    ----------
    kind : {"all_reduce", "broadcast", "reduce"}
    nbytes : int
        payload S [B]
    shape : GroupShape

    Raises
    ------
    BadInput
        when ``kind`` is another or ``nbytes`` is negative

    References
    ----------
    Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
    Computing 35 (2009).
    """
    require_call("tree", kind, nbytes, KINDS)
    layout = Layout.of(shape)
    num_lanes, num_nodes = layout.num_lanes, layout.num_nodes
    per_chain, per_tree = -(-nbytes // (num_lanes * layout.num_rings)), -(-nbytes // (2 * num_lanes))
    longest_chain, depth = int(layout.count.max()) - 1, (num_nodes - 1).bit_length()

    starts, hops = layout.starts(), 2 * longest_chain
    if kind != "all_reduce":
        starts[shape.node == 0] = 0
        starts[0] = num_lanes
        hops = longest_chain + (num_lanes - 1 if num_nodes > 1 else 0)
    head, tail, uses = layout.paths(starts)
    child, parent = double_tree(num_nodes)
    lanes = layout.lanes()
    inside = directed(kind, head, tail, uses * per_chain, hops)
    between_heads, between_tails = lanes[parent.ravel()].ravel(), lanes[child.ravel()].ravel()
    between = directed(
        kind,
        between_heads,
        between_tails,
        np.full_like(between_heads, per_tree),
        (2 if kind == "all_reduce" else 1) * depth,
    )
    phases = tuple(p for p in (inside, between) if len(p.source))
    return Traffic(
        algorithm="tree",
        phases=phases,
        pipelined=True,
        returns=kind == "all_reduce",
        memory_nbytes=memory_traffic(kind, nbytes, shape, phases),
        num_sms=collective_sms(layout),
        num_flows=max(-(-flows_on_busiest_link([inside]) // layout.num_rings), flows_on_busiest_link([between])),
    )


def double_tree(num_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two binary trees over nodes 0 … num_nodes-1, both under node 0; a node inside one is a leaf of the other.

    In the first tree the lowest set bit of a node is its height: odd nodes are leaves, and a node's parent is the
    neighbour with that bit moved up by one, or cleared where there is no such node. The second is the first with the
    nodes but the root mirrored (odd number of nodes) or shifted by one (even), which turns odd nodes even.

    Returns
    -------
    child, parent : NDArray[int64], shape (2, num_nodes - 1)
    """
    node = np.arange(1, num_nodes, dtype=np.int64)
    bit = node & -node
    up = (node ^ bit) | (bit << 1)
    parent = np.where(up < num_nodes, up, node ^ bit)
    renamed = np.zeros(num_nodes, dtype=np.int64)
    renamed[1:] = num_nodes - node if num_nodes % 2 else node % (num_nodes - 1) + 1
    return np.stack([node, renamed[node]]), np.stack([parent, renamed[parent]])


def directed(
    kind: str, head: NDArray[np.int64], tail: NDArray[np.int64], nbytes: NDArray[np.int64], num_steps: int
) -> Phase:
    """Edges away from the root for broadcast, towards it for reduce, both for all-reduce."""
    ways = {"broadcast": [(head, tail)], "reduce": [(tail, head)], "all_reduce": [(tail, head), (head, tail)]}[kind]
    return Phase(
        source=np.concatenate([a for a, _ in ways]),
        destination=np.concatenate([b for _, b in ways]),
        nbytes=np.concatenate([nbytes] * len(ways)),
        num_steps=num_steps,
    )
