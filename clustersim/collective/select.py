"""Which algorithms a collective may run as: those that NCCL would consider, or the user's."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.collective.barrier import barrier
from clustersim.collective.bound import KINDS
from clustersim.collective.bruck import bruck
from clustersim.collective.checks import require_call
from clustersim.collective.collnet_chain import collnet_chain
from clustersim.collective.direct import direct
from clustersim.collective.halving_doubling import halving_doubling
from clustersim.collective.hierarchical import hierarchical
from clustersim.collective.layout import Layout
from clustersim.collective.nvls import nvls
from clustersim.collective.pat import pat
from clustersim.collective.point_to_point import point_to_point
from clustersim.collective.ring import ring
from clustersim.collective.sharp import sharp
from clustersim.collective.traffic import Algorithm, GroupShape
from clustersim.collective.tree import tree
from clustersim.faults import BadInput, Fault, nearest_name

__all__ = ["ALGORITHMS", "PROTOCOLS", "Option", "options", "pin"]

ALGORITHMS: dict[str, Algorithm] = {
    "ring": ring,
    "tree": tree,
    "hierarchical": hierarchical,
    "direct": direct,
    "nvls": nvls,
    "sharp": sharp,
    "collnet_chain": collnet_chain,
    "halving_doubling": halving_doubling,
    "bruck": bruck,
    "pat": pat,
    "point_to_point": point_to_point,
    "barrier": barrier,
}

PROTOCOLS = ("LL", "LL128", "Simple")
"""Those of NCCL and RCCL, see :class:`clustersim.hardware.communication.Communication`."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An algorithm that a collective may run as.

    Parameters
    ----------
    algorithm : Algorithm
    protocol : str, optional
        the only one to take; the fastest when None
    reason : str
        why it is the only option, empty where there are others
    """

    algorithm: Algorithm
    protocol: str | None = None
    reason: str = ""


def options(kind: str, nbytes: int, shape: GroupShape) -> tuple[Option, ...]:
    """The algorithms that NCCL would choose from, of those modelled here; the fastest of them runs.

    Only all_reduce has a choice. A ring always; a tree over several nodes, because on one node NCCL's tree is a chain
    and takes as many steps; NVLS where the switches of a node can reduce and more than two members share one; SHARP
    between nodes where the fabric does it; both with equally many members on each node. NCCL 2.27 runs all_gather and
    reduce_scatter over NVLS only for buffers that the user has registered, so they are rings here.

    Raises
    ------
    BadInput
        when ``kind`` is not a collective or ``nbytes`` is negative
    """
    require_call("clustersim", kind, nbytes, KINDS)
    if kind in _ONLY:
        return (Option(algorithm=ALGORITHMS[_ONLY[kind]], reason=f"{kind} always runs as {_ONLY[kind]}"),)
    layout = Layout.of(shape)
    names = ["ring"]
    if layout.num_nodes > 1:
        names.append("tree")
    equal = int(layout.count.min()) == int(layout.count.max())
    if shape.multicast and equal and layout.num_lanes > 2:
        names.append("nvls")
    if shape.in_network and equal and layout.num_nodes > 1:
        names.append("sharp")
    names = [name for name in names if name in ALGORITHMS]
    reason = "a tree saves no steps on one node, and its switches do not reduce" if len(names) == 1 else ""
    return tuple(Option(algorithm=ALGORITHMS[name], reason=reason) for name in names)


def pin(algorithm: str | Algorithm) -> Option:
    """The user's choice.

    Parameters
    ----------
    algorithm : str or Algorithm
        a key of ``ALGORITHMS``, with a protocol after a slash where that is pinned too, ``ring/LL128``; or an algorithm
        of the user's own

    Raises
    ------
    BadInput
        when it is neither a known name nor callable, or the protocol is unknown; names all and the nearest
    """
    if callable(algorithm):
        return Option(algorithm=algorithm, reason="pinned by the user")
    name, slash, protocol = str(algorithm).partition("/")
    faults = []
    if name not in ALGORITHMS or not isinstance(algorithm, str):
        rule = f"is not an algorithm: {', '.join(ALGORITHMS)}, or a callable (kind, nbytes, shape) -> Traffic"
        faults.append(Fault(key="algorithm", value=algorithm, rule=rule, nearest=nearest_name(name, ALGORITHMS)))
    if slash and protocol not in PROTOCOLS:
        rule = f"is not a protocol: {', '.join(PROTOCOLS)}"
        faults.append(Fault(key="protocol", value=protocol, rule=rule, nearest=nearest_name(protocol, PROTOCOLS)))
    if faults:
        raise BadInput(faults)
    return Option(algorithm=ALGORITHMS[name], protocol=protocol or None, reason="pinned by the user")
