"""One cut through a group, and what must cross it, whatever the algorithm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cut", "crossing"]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Cut:
    """Some members of a group against the others.

    Parameters
    ----------
    inside : NDArray[bool], shape (n,)
        the members on this side
    name : str
        ``rank 3``, ``node 1``, ``8 ranks``
    outward, inward : float
        capacity of resources of which every route to, and from, the other side crosses one [B/s]
    outward_over, inward_over : str
        which: ``8 nic``
    """

    inside: NDArray[np.bool_]
    name: str
    outward: float
    inward: float
    outward_over: str
    inward_over: str


def crossing(kind: str, nbytes: int, inside: NDArray[np.bool_]) -> tuple[float, float]:
    """Bytes that must leave one side of a cut and that must enter it, whatever the algorithm.

    With k of n members inside: an all_reduce takes the sum of either side to the other, S each way; of an all_gather
    k/n·S leaves and (n-k)/n·S enters, of a reduce_scatter the reverse; of an all_to_all k(n-k)/n·S go each way. Rooted
    collectives cross once, on the way from or to position 0.

    Parameters
    ----------
    kind : str
    nbytes : int
        payload S [B]
    inside : NDArray[bool], shape (n,)

    Returns
    -------
    outward, inward : float
        [B]
    """
    n, k = len(inside), int(inside.sum())
    if k in (0, n):
        return 0.0, 0.0
    near, far = k / n * nbytes, (n - k) / n * nbytes
    root = bool(inside[0])
    whole = float(nbytes)
    if kind == "send_recv":
        return (0.0, 0.0) if root == bool(inside[1]) else (whole, 0.0) if root else (0.0, whole)
    return {
        "all_reduce": (whole, whole),
        "all_gather": (near, far),
        "reduce_scatter": (far, near),
        "all_to_all": (near * (n - k), near * (n - k)),
        "broadcast": (whole, 0.0) if root else (0.0, whole),
        "reduce": (0.0, whole) if root else (whole, 0.0),
        "scatter": (far, 0.0) if root else (0.0, near),
        "gather": (0.0, far) if root else (near, 0.0),
    }.get(kind, (0.0, 0.0))
