"""What is known of the networks that measured collectives ran over, and where the numbers of each kind start."""

from __future__ import annotations

from clustersim.hardware.communication import Transport
from clustersim.library.part import load_part

__all__ = ["STATED", "UNKNOWN", "is_known", "network_start"]

UNKNOWN = ("assumed", "not stated", "not read", "effectively")
"""Words in the description of a network that nobody knows: such rows, and those without a description, are predicted
and calibrate nothing."""

STATED = ("4 NICs per node in use",)
"""Words of those that the measurement's own thread describes, though the row does not, and that the card has:
NVIDIA/nccl issue 1411, four ConnectX-7 with 194 GB/s together."""

_STARTS = {"efa": "nccl-efa"}
_START = "nccl-network"


def is_known(link: str) -> bool:
    """Whether the network is known that ``link`` describes.

    Parameters
    ----------
    link : str
        between nodes, as published; empty where nothing is
    """
    return any(words in link for words in STATED) or (bool(link) and not any(word in link for word in UNKNOWN))


def network_start(name: str) -> Transport:
    """Where the numbers of a network start that published rows calibrate.

    Those of EFA start from another machine on EFA, those of all others from InfiniBand; neither is among the rows that
    calibrate the shipped cards. Inside its nodes, which both have H100, the numbers of ``nccl-h100`` were taken.

    Parameters
    ----------
    name : str
        of the transport's card
    """
    return load_part("transport", _STARTS.get(name, _START))
