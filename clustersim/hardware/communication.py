"""What a communication library (NCCL, RCCL) costs on one kind of node, and over one kind of network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated

from clustersim.hardware.protocol import Protocol
from clustersim.hardware.residual import Residual
from clustersim.units import Unit

__all__ = ["LL128_FRACTION", "Communication", "Transport", "numbers", "protocols"]

LL128_FRACTION = 120 / 128
"""Most of a link's bandwidth that LL128 can fill: 8 of its 128 bytes are flags."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Communication:
    """Inside a node: twelve numbers that small and large collectives on one machine determine.

    Parameters
    ----------
    name : str
        card name, ``nccl-h100``
    launch_latency : float
        from the call to the first step of LL and LL128 [s]
    ll_latency, ll128_latency : float
        of a step of these protocols, beside the latency of its route [s]
    ll128_fraction : float
        of the links' bandwidth that LL128 fills; LL half as much, since half of what it sends is flags
    simple_launch_latency, simple_latency, simple_fraction : float
        of protocol Simple: from the call to the first step [s], of a step and chunk [s], of the bandwidth
    nvls_fraction : float
        of the links' bandwidth that reductions in the node's switches reach
    message_launch_latency, message_latency, message_fraction : float
        of sends and receives between pairs, all_to_all among them, which fill their pipeline as of
        :meth:`clustersim.hardware.protocol.Protocol.ns`; ``message_latency`` is also that of a step of NVLS, which like
        a message goes to all peers at once
    copy_bandwidth : float
        at which a member copies its own block [B/s]
    residual : Residual, optional
        of the collectives that the card was calibrated by; None where nothing was measured
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    name: str
    launch_latency: Annotated[float, Unit("s")]
    ll_latency: Annotated[float, Unit("s")]
    ll128_latency: Annotated[float, Unit("s")]
    ll128_fraction: float
    simple_launch_latency: Annotated[float, Unit("s")]
    simple_latency: Annotated[float, Unit("s")]
    simple_fraction: float
    nvls_fraction: float
    message_launch_latency: Annotated[float, Unit("s")]
    message_latency: Annotated[float, Unit("s")]
    message_fraction: float
    copy_bandwidth: Annotated[float, Unit("B/s")]
    residual: Residual | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_ranges(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Transport:
    """Between nodes: what a step over one kind of network costs beside the route.

    Parameters
    ----------
    name : str
        card name, ``infiniband``
    ll_latency : float
        of a step of LL and LL128 in a ring; a tree's takes :data:`TREE_STEPS` times as long, in Simple too [s]
    ll128_fraction : float
        of the network's bandwidth that LL128 fills; LL half as much
    simple_latency, simple_fraction : float
        of a step and chunk of protocol Simple [s], of the bandwidth
    message_latency, message_fraction : float
        of sends and receives between pairs
    in_order : bool
        whether what is written arrives in order, as LL and LL128 need, which tell data from what was there before by
        flags among it. Where it does not, a plugin of the network leaves Simple alone, inside nodes too
    residual : Residual, optional
        of the collectives that the card was calibrated by; None where nothing was measured
    sources : Mapping[str, str]
        where each number comes from, or ``assumed``

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    name: str
    ll_latency: Annotated[float, Unit("s")]
    ll128_fraction: float
    simple_latency: Annotated[float, Unit("s")]
    simple_fraction: float
    message_latency: Annotated[float, Unit("s")]
    message_fraction: float
    in_order: bool = True
    residual: Residual | None = None
    sources: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_ranges(self)


def numbers(card: Communication | Transport) -> tuple[str, ...]:
    """Names of the numbers of a card, those that measurements determine."""
    return tuple(item.name for item in fields(card) if item.name not in ("name", "in_order", "residual", "sources"))


def _require_ranges(card: Communication | Transport) -> None:
    for name in numbers(card):
        value = getattr(card, name)
        if name.endswith("_latency") and not 0 <= value < float("inf"):
            raise ValueError(f"{name}: {value} must be zero or positive, and finite [s]")
        if name == "ll128_fraction" and not 0 < value <= LL128_FRACTION:
            raise ValueError(f"{name}: {value} must be a fraction in (0, {LL128_FRACTION}]")
        if name.endswith("_fraction") and not 0 < value <= 1:
            raise ValueError(f"{name}: {value} must be a fraction in (0, 1]")
        if name.endswith("_bandwidth") and not 0 < value < float("inf"):
            raise ValueError(f"{name}: {value} must be positive and finite [B/s]")


STEPWISE = ("ring", "tree", "hierarchical", "halving_doubling", "barrier")
"""Algorithms that pass chunks from neighbour to neighbour, with all three protocols."""

SIMPLE_ONLY = ("pat", "sharp", "collnet_chain")
"""Algorithms that NCCL runs with Simple alone (``src/graph/tuning.cc``)."""

TREE_FRACTION = 0.92
"""Of a ring's bandwidth that a tree reaches: NCCL, ``src/graph/tuning.cc``."""

TREE_STEPS = 3
"""Steps of a ring that a step of a tree over the network takes as long as, NVLS's tree among them: a node inside a tree
hears from two others before it answers, and what goes up comes down again. Assumed: of 1, 2 and 3 the one under which
collectives over several nodes came out best; NCCL's own table has 1.9 for LL and 2.1 for LL128 (``hwLat``,
``src/graph/tuning.cc``)."""

PAIRWISE = ("direct", "point_to_point", "uneven", "bruck", "deduplicated")
"""Algorithms of messages between pairs: LL and Simple."""


def protocols(node: Communication, network: Transport) -> dict[str, tuple[Protocol, ...]]:
    """Protocols by algorithm, of a library on such nodes and over such a network.

    Every stepwise algorithm has the same three: NCCL's tuning model tells them apart by the number of their steps,
    which is in their flows here, and by the bandwidth and the latency of a tree. NVLS runs with Simple alone, and so
    does everything where the network does not keep order.
    """
    ll128 = Protocol(
        name="LL128",
        launch_latency=node.launch_latency,
        inside_latency=node.ll128_latency,
        between_latency=network.ll_latency,
        inside_fraction=node.ll128_fraction,
        between_fraction=network.ll128_fraction,
        in_order=True,
    )
    ll = replace(
        ll128,
        name="LL",
        in_order=False,
        inside_latency=node.ll_latency,
        inside_fraction=node.ll128_fraction / 2,
        between_fraction=network.ll128_fraction / 2,
    )
    simple = Protocol(
        name="Simple",
        launch_latency=node.simple_launch_latency,
        inside_latency=node.simple_latency,
        between_latency=network.simple_latency,
        inside_fraction=node.simple_fraction,
        between_fraction=network.simple_fraction,
        copy_bandwidth=node.copy_bandwidth,
        chunked=True,
    )
    messages = replace(
        simple,
        pairwise=True,
        launch_latency=node.message_launch_latency,
        inside_latency=node.message_latency,
        between_latency=network.message_latency,
        inside_fraction=node.message_fraction,
        between_fraction=network.message_fraction,
    )
    nvls = replace(
        simple,
        inside_latency=node.message_latency,
        between_latency=TREE_STEPS * network.simple_latency,
        inside_fraction=node.nvls_fraction,
        copy_bandwidth=float("inf"),
    )
    tree = tuple(
        replace(
            way,
            between_latency=TREE_STEPS * way.between_latency,
            inside_fraction=TREE_FRACTION * way.inside_fraction,
            between_fraction=TREE_FRACTION * way.between_fraction,
        )
        for way in (ll, ll128, simple)
    )
    known: dict[str, tuple[Protocol, ...]] = {
        **dict.fromkeys(STEPWISE, (ll, ll128, simple)),
        **dict.fromkeys(SIMPLE_ONLY, (simple,)),
        **dict.fromkeys(PAIRWISE, (ll, messages)),
        "tree": tree,
        "nvls": (nvls,),
    }
    if network.in_order:
        return known
    return {algorithm: tuple(way for way in ways if way.chunked) for algorithm, ways in known.items()}
