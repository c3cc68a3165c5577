"""How many SMs a collective takes, and how many peers a member serves at once: the assumed numbers, in one place.

A NCCL channel is one thread block, so one SM, that drives one ring or tree. NCCL finds its channels in the topology
and then duplicates each of them (``src/graph/connect.cc``, ``ncclTopoPostset``). What a
communicator ended up with stands in its log: ``24 coll channels, …, 32 p2p channels, 32 p2p channels per peer``.
"""

from __future__ import annotations

from clustersim.collective.layout import Layout

__all__ = ["NVLS_CHANNELS", "PEERS_AT_ONCE", "collective_sms", "point_to_point_sms"]

CHANNELS_ON_ONE_NODE = 24
"""measured: NCCL logs of 2, 4 and 8 A100 and of 8 H100 on one node; assumed for every other switched node."""

CHANNELS_PER_RING = 2
"""NCCL: it runs twice the channels that its search finds (issue 1041), here the rings over the links of a mesh."""

CHANNELS_PER_LANE = 2
"""measured: NCCL logs over several nodes: 16 with 8 members a node, 4 with 2, 2 with 1.

From Hopper on, recent NCCL doubles them once more below 16 (same source file); not modelled."""

MAX_CHANNELS = 32
"""NCCL 2.20 source, MAXCHANNELS."""

POINT_TO_POINT_CHANNELS_ON_ONE_NODE = 8
"""assumed: a link of a switched node takes several channels to fill; logs allow up to 32 a peer."""

POINT_TO_POINT_CHANNELS_BETWEEN_NODES = 2
"""measured: ``2 p2p channels per peer`` in NCCL logs of groups over several nodes."""

NVLS_CHANNELS = 16
"""NCCL source, ``src/transport/nvls.cc``: default of NCCL_NVLS_NCHANNELS; logs of H100 say the same.

With registered user buffers it takes as few as 4 (issue 1670); not modelled."""

PEERS_AT_ONCE = 64
"""assumed: 16 channels, 2 a peer, 8 sends and 8 receives sharing a channel's warps."""


def collective_sms(layout: Layout) -> int:
    """SMs that a ring or tree takes on each member: one a channel."""
    if layout.num_nodes == 1 and layout.num_rings > 1:
        return min(MAX_CHANNELS, CHANNELS_PER_RING * layout.num_rings)
    if layout.num_nodes == 1:
        return CHANNELS_ON_ONE_NODE
    return min(MAX_CHANNELS, CHANNELS_PER_LANE * layout.num_lanes)


def point_to_point_sms(num_nodes: int, num_peers: int) -> int:
    """SMs that sends and receives with ``num_peers`` peers take on a member."""
    per_peer = POINT_TO_POINT_CHANNELS_ON_ONE_NODE if num_nodes == 1 else POINT_TO_POINT_CHANNELS_BETWEEN_NODES
    return min(MAX_CHANNELS, per_peer * num_peers)
