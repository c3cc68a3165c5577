"""CollNet chain: chains inside nodes, and between them the switches add up and copy."""

from __future__ import annotations

from clustersim.collective.channels import collective_sms
from clustersim.collective.checks import require_call
from clustersim.collective.demand import flows_on_busiest_link, memory_traffic
from clustersim.collective.layout import Layout
from clustersim.collective.sharp import aggregated, require_in_network
from clustersim.collective.traffic import GroupShape, Traffic
from clustersim.collective.tree import directed

__all__ = ["collnet_chain"]


def collnet_chain(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Flows of NCCL's CollNetChain: a tree whose part between nodes is left to the network.

    With c lanes (members that every node has) each lane takes S/c: the chain j, j+1, …, j-1 inside each node adds up
    towards member j, the network's switches add up what these send and copy the sum to all of them, and the chains
    take it to the others. A NIC sends S/c and receives S/c. On a mesh each chain is divided among the R rings inside
    its node: S/(cR) along each.

    **Rounding.** Each flow is rounded up to whole bytes a lane and ring.

    **Steps.** There and back along the longest chain and once through the network: 2(m-1) + 1, as in NCCL's tuning
    model (``src/graph/tuning.cc``).

    Parameters
    ----------
    kind : {"all_reduce"}
    nbytes : int
        payload S [B]
    shape : GroupShape
        with ``in_network``

    Raises
    ------
    BadInput
        when ``kind`` is another, ``nbytes`` is negative, the switches between nodes do not add up, or there is one node
    """
    require_call("collnet_chain", kind, nbytes, ("all_reduce",))
    require_in_network("collnet_chain", shape)
    layout = Layout.of(shape)
    head, tail, uses = layout.paths(layout.starts())
    per_ring = -(-nbytes // (layout.num_lanes * layout.num_rings))
    inside = directed(kind, head, tail, uses * per_ring, 2 * (int(layout.count.max()) - 1))
    between = aggregated(layout.lanes(), -(-nbytes // layout.num_lanes))
    phases = tuple(phase for phase in (inside, between) if len(phase.source))
    return Traffic(
        algorithm="collnet_chain",
        phases=phases,
        pipelined=True,
        memory_nbytes=memory_traffic(kind, nbytes, shape, phases),
        num_sms=collective_sms(layout),
        num_flows=max(-(-flows_on_busiest_link([inside]) // layout.num_rings), flows_on_busiest_link([between])),
    )
