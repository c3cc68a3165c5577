"""Ring: every member passes chunks to the next. The least bytes of all algorithms, and steps that grow with n."""

from __future__ import annotations

from clustersim.collective.channels import collective_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import memory_traffic
from clustersim.collective.layout import Edges, Layout
from clustersim.collective.traffic import GroupShape, Phase, Traffic

__all__ = ["ring"]

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")


def ring(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of a ring, or of several rings over a mesh or over several nodes.

    **Bytes.** All-gather and reduce-scatter send n-1 of n blocks over each edge of the ring, all-reduce does both, so
    each member sends T = p(n-1)/n·S with p = 1, or p = 2 for all-reduce. Broadcast and reduce are chains from and to
    the root, position 0: T = S over each edge but the one that would close the ring at the root.

    **Meshes.** With R rings inside a node (``shape.rings``), as NCCL and RCCL find them over direct links, each
    carries T/R: a link that u of them cross carries u·T/R. They come in pairs of opposite directions, so both
    directions of the links are used; behind a switch, where one order is as good as another, NCCL runs all its rings
    one way round.

    **Several nodes.** NCCL builds one ring a channel, and lets each enter and leave a node through another member so
    that all NICs are used. With c lanes (members that every node has) there are c rings, each with T/c. Ring j
    enters a node at member j, visits the members in cyclic order, leaves from member j-1 and so enters the next node
    at member j-1: member i of node k sends to member i of node k+1, and with m = c members on a node

    - each member's NIC carries T/m out and T/m in,
    - each edge i → i+1 inside a node is used by all rings but the one entering at i+1: (m-1)/m·T.

    Members beyond the c-th carry only edges inside their node (T), and the ring that leaves from the last member of
    a larger node enters the next at member c-1. Only these sums are kept: which edges inside a node one ring takes
    depends on how NCCL keeps it on its rail (``src/graph/connect.cc`` swaps rings on every other node), what each
    member sends and receives does not.

    On meshes each lane is divided once more among the R rings inside: part (j, r), with T/(cR), enters at member j,
    follows ring r and leaves from the member before j in it. The NICs carry what they carry above. RCCL's eight
    paths among eight MI300X, one a NIC, load each link just as much.

    **Rounding.** T/(cR) is rounded up to whole bytes, so equal members have equal loads and each sends less than cR
    bytes too much.

    **Own block.** Of its own S/n a member also copies what it need not send or get, or in an all-reduce adds up the
    last time: a step without a link.

    **Steps.** A chunk makes p(n-1) hops. One pass leaves out one edge; the slowest leaves out an edge inside a node
    and crosses between all N nodes, N-1 times if there is no other edge. NCCL's tuning model counts the same 2N
    hops of an all-reduce (NCCL 2.20, ``src/graph/tuning.cc``, ``nInterSteps``).

    Parameters
    ----------
    kind : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}
    nbytes : int
        payload S [B]
    shape : GroupShape

    Raises
    ------
    BadInput
        when ``kind`` is another or ``nbytes`` is negative

    References
    ----------
    Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", JPDC 69 (2009).
    """
    require_call("ring", kind, nbytes, KINDS)
    n, layout = shape.num_members, Layout.of(shape)
    num_nodes = layout.num_nodes
    num_rings = layout.num_rings * (layout.num_lanes if num_nodes > 1 else 1)
    passes = 2 if kind == "all_reduce" else 1
    whole = nbytes * n if kind in ("broadcast", "reduce") else passes * (n - 1) * nbytes
    per_ring = -(-whole // (n * num_rings))
    crossings = passes * (num_nodes if n > num_nodes else num_nodes - 1) if num_nodes > 1 else 0

    edges = layout.paths(layout.starts()) if num_nodes > 1 else layout.cycle()
    message = 0.0 if kind in ("broadcast", "reduce") else per_ring / (passes * max(1, n - 1))
    phases = [_carrying(per_ring, edges, passes * (n - 1) - crossings, message)]
    if num_nodes > 1:
        phases.append(_carrying(per_ring, layout.crossings(), crossings, message))
    kept = tuple(p for p in (_opened(kind, phase) for phase in phases) if len(p.source))
    return Traffic(
        algorithm="ring",
        phases=kept,
        pipelined=True,
        memory_nbytes=memory_traffic(kind, nbytes, shape, kept),
        num_sms=collective_sms(layout),
        own_nbytes=0 if kind in ("broadcast", "reduce") else -(-nbytes // n),
    )


def _carrying(per_ring: int, edges: Edges, num_steps: int, message: float) -> Phase:
    source, destination, uses = edges
    return Phase(
        source=source,
        destination=destination,
        nbytes=uses * per_ring,
        num_steps=num_steps,
        message_nbytes=message,
    )


def _opened(kind: str, phase: Phase) -> Phase:
    """Without the edges that close the ring at the root: into it in a broadcast, out of it in a reduce."""
    if kind not in ("broadcast", "reduce"):
        return phase
    keep = (phase.destination if kind == "broadcast" else phase.source) != 0
    return Phase(
        source=phase.source[keep],
        destination=phase.destination[keep],
        nbytes=phase.nbytes[keep],
        num_steps=phase.num_steps,
        message_nbytes=phase.message_nbytes,
    )
