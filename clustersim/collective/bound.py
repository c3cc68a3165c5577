"""Lower bounds of collectives, and the bus bandwidth that measurements are quoted in."""

from __future__ import annotations

from clustersim.collective.checks import require_call

__all__ = ["KINDS", "bus_factor", "lower_bound"]

KINDS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "gather",
    "scatter",
    "broadcast",
    "reduce",
    "send_recv",
    "barrier",
)


def bus_factor(kind: str, n: int) -> float:
    """Bus bandwidth over algorithm bandwidth: busbw = factor · S/t.

    Parameters
    ----------
    kind : str
    n : int
        members

    Returns
    -------
    float
        2(n-1)/n for all_reduce; (n-1)/n for all_gather, reduce_scatter, all_to_all, gather and scatter; 1 for
        broadcast, reduce and send_recv; 0 for barrier

    Raises
    ------
    BadInput
        when ``kind`` is not a collective

    References
    ----------
    nccl-tests, doc/PERFORMANCE.md; the factors of gather and scatter stand in its gather.cu and scatter.cu.
    """
    require_call("clustersim", kind, 0, KINDS)
    if kind == "barrier":
        return 0.0
    if kind in ("broadcast", "reduce", "send_recv"):
        return 1.0
    return (2 if kind == "all_reduce" else 1) * (n - 1) / n


def lower_bound(kind: str, nbytes: int, n: int, bandwidth: float) -> float:
    """Least time of a collective between members that each send and receive at ``bandwidth``, whatever the algorithm.

    t = bus_factor(kind, n) · S/B: the bytes that some member must at least send or receive, without reduction in the
    network.

    Parameters
    ----------
    kind : str
    nbytes : int
        payload S [B]
    n : int
        members; 0 s for a single one
    bandwidth : float
        B, one direction, of each member [B/s]

    Returns
    -------
    float
        [s]
    """
    return bus_factor(kind, n) * nbytes / bandwidth if n > 1 else 0.0
