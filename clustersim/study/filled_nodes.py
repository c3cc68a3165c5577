"""Whether the nodes of a measurement are those that its ranks fill."""

from __future__ import annotations

__all__ = ["nodes_disagree"]


def nodes_disagree(num_ranks: int, num_nodes: int, per_node: int | None = None) -> str | None:
    """How many ranks fill another number of nodes; None where they fill so many, the last of them perhaps in part.

    Parameters
    ----------
    num_ranks, num_nodes : int
    per_node : int, optional
        ranks on each node but the last; as even as possible where it is not told
    """
    per_node = per_node or -(-num_ranks // num_nodes)
    if -(-num_ranks // per_node) == num_nodes:
        return None
    return f"{num_ranks} ranks, {per_node} on each of {num_nodes} nodes"
