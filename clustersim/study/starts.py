"""Where the numbers of communication libraries start that published rows calibrate: cards of other machines."""

from __future__ import annotations

from clustersim.hardware.communication import Communication, Transport
from clustersim.library.part import load_part

__all__ = ["network_start", "node_start"]

_NODE, _NODES = "nccl", {"rccl": "rccl"}
_NETWORK = "nccl-network"
_NETWORKS = {"efa": "nccl-efa", "efa-sendrecv": "efa-sendrecv", "rccl-network": "rccl-network"}


def node_start(name: str) -> Communication:
    """Where the numbers of a kind of node start: NCCL's from a generic card, RCCL's from an MI300X measured beside.

    Parameters
    ----------
    name : str
        of the card of the communication library
    """
    return load_part("communication", _NODES.get(name, _NODE))


def network_start(name: str) -> Transport:
    """Where the numbers of a network start: those of EFA and of RCCL from machines on these, others from InfiniBand.

    None of these machines is among the rows that calibrate the shipped cards. Inside their nodes the numbers of their
    kind's card were taken.

    Parameters
    ----------
    name : str
        of the transport's card
    """
    return load_part("transport", _NETWORKS.get(name, _NETWORK))
