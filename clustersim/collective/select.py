"""Which algorithm runs: NCCL's choice by kind, size, ranks and nodes, or the user's."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.collective.barrier import barrier
from clustersim.collective.bound import KINDS
from clustersim.collective.checks import require_call
from clustersim.collective.direct import direct
from clustersim.collective.hierarchical import hierarchical
from clustersim.collective.layout import Layout
from clustersim.collective.point_to_point import point_to_point
from clustersim.collective.ring import ring
from clustersim.collective.traffic import Algorithm, GroupShape
from clustersim.collective.tree import tree
from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["ALGORITHMS", "Choice", "resolve", "select", "tree_limit"]

ALGORITHMS: dict[str, Algorithm] = {
    "ring": ring,
    "tree": tree,
    "hierarchical": hierarchical,
    "direct": direct,
    "point_to_point": point_to_point,
    "barrier": barrier,
}

_ONLY = {
    "all_gather": "ring",
    "reduce_scatter": "ring",
    "broadcast": "ring",
    "reduce": "ring",
    "all_to_all": "direct",
    "gather": "direct",
    "scatter": "direct",
    "send_recv": "point_to_point",
    "barrier": "barrier",
}

# One step over NVLink and over the network, protocol LL128: NCCL 2.20, src/graph/tuning.cc, hwLat [ns].
_RING_STEP_NS = (1900, 4000)
_TREE_STEP_NS = (1250, 8500)
# The same model takes 0.92 of a graph's bandwidth for a tree.
_TREE_BANDWIDTH_PERCENT = 92
# assumed: one 200 Gb/s NIC a lane. The choice is made before the topology is known; pin the algorithm to overrule it.
_NIC_BYTES_PER_S = 25 * 10**9


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """An algorithm and why it was taken.

    Parameters
    ----------
    algorithm : Algorithm
    name : str
        key of ``ALGORITHMS``
    reason : str
        one line, for the result
    """

    algorithm: Algorithm
    name: str
    reason: str


def select(kind: str, nbytes: int, shape: GroupShape) -> Choice:
    """The algorithm that NCCL's model would take, of those modelled here.

    Only all_reduce has a choice: on one node a ring, because NCCL's tree is a chain there and takes as many steps;
    over several nodes a tree up to :func:`tree_limit`, then a ring.

    Raises
    ------
    BadInput
        when ``kind`` is not a collective or ``nbytes`` is negative
    """
    require_call("clustersim", kind, nbytes, KINDS)
    if kind in _ONLY:
        name, reason = _ONLY[kind], f"{kind} always runs as {_ONLY[kind]}"
    elif (limit := tree_limit(shape)) == 0:
        name, reason = "ring", "a tree saves no steps in this group"
    elif nbytes <= limit:
        name, reason = "tree", f"up to {limit / 1e6:.3g} MB a tree's fewer steps outweigh its lower bandwidth"
    else:
        name, reason = "ring", f"above {limit / 1e6:.3g} MB a ring's bandwidth outweighs its steps"
    return Choice(algorithm=ALGORITHMS[name], name=name, reason=reason)


def tree_limit(shape: GroupShape) -> int:
    """Largest all_reduce for which a tree is faster than a ring in NCCL's latency-bandwidth model [B].

    Both take latency + S/bandwidth. With the ring's bandwidth b = n/(2(n-1)) · lanes · NIC and the tree's 0.92 b,
    they meet at S = (ring latency - tree latency) · b · 0.92/(1 - 0.92). Latencies are steps times NCCL's time a
    step; steps are those of ``ring`` and ``tree``. NCCL 2.20 further scales the tree's bandwidth by a measured curve
    of the size, which is left out. 0 on one node, where the two take equal steps.
    """
    n, layout = shape.num_members, Layout.of(shape)
    num_nodes = layout.num_nodes
    if num_nodes == 1:
        return 0
    between = 2 * (num_nodes if n > num_nodes else num_nodes - 1)
    ring_ns = (2 * (n - 1) - between) * _RING_STEP_NS[0] + between * _RING_STEP_NS[1]
    chain, depth = int(layout.count.max()) - 1, (num_nodes - 1).bit_length()
    tree_ns = 2 * (chain * _TREE_STEP_NS[0] + depth * _TREE_STEP_NS[1])
    saved = max(0, ring_ns - tree_ns) * layout.num_lanes * _NIC_BYTES_PER_S * n // (2 * (n - 1) * 10**9)
    return saved * _TREE_BANDWIDTH_PERCENT // (100 - _TREE_BANDWIDTH_PERCENT)


def resolve(algorithm: str | Algorithm | None, kind: str, nbytes: int, shape: GroupShape) -> tuple[Algorithm, str]:
    """The algorithm to run and why: the user's where pinned, else the selected one.

    Parameters
    ----------
    algorithm : str or Algorithm, optional
        a key of ``ALGORITHMS`` or an algorithm of the user's own
    kind, nbytes, shape
        of the collective

    Raises
    ------
    BadInput
        when it is neither a known name nor callable; names all and the nearest
    """
    if algorithm is None:
        choice = select(kind, nbytes, shape)
        return choice.algorithm, choice.reason
    if callable(algorithm):
        return algorithm, "pinned by the user"
    if algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm], "pinned by the user"
    rule = f"is not an algorithm: {', '.join(ALGORITHMS)}"
    nearest = nearest_name(str(algorithm), ALGORITHMS)
    raise BadInput([Fault(key="algorithm", value=algorithm, rule=rule, nearest=nearest)])
