"""Protocols: the ways in which a communication library sends the data of one algorithm, each with its own overhead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from clustersim.units import Unit

__all__ = ["NCCL", "Protocol"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Protocol:
    """What sending costs beside the links.

    Parameters
    ----------
    name : str
        ``LL``, ``LL128``, ``Simple``
    launch_latency : float
        from the call to the first step; it takes the place of a GPU's own launch latency where that is shorter [s]
    inside_latency, between_latency : float
        of a step over links inside a node, and over the network, beside the latency of its route [s]
    bandwidth_fraction : float
        of the links' bandwidth that carries data, in (0, 1]

    Raises
    ------
    ValueError
        naming field, value and rule
    """

    name: str
    launch_latency: Annotated[float, Unit("s")]
    inside_latency: Annotated[float, Unit("s")]
    between_latency: Annotated[float, Unit("s")]
    bandwidth_fraction: float

    def __post_init__(self) -> None:
        for name in ("launch_latency", "inside_latency", "between_latency"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: {getattr(self, name)} must be zero or positive, and finite [s]")
        if not 0 < self.bandwidth_fraction <= 1:
            raise ValueError(f"bandwidth_fraction: {self.bandwidth_fraction} must be a fraction in (0, 1]")


def _protocol(name: str, launch: float, inside: float, between: float, fraction: float) -> Protocol:
    """From NCCL's numbers [us]; the route's own 0.6 us and 2.7 us are in the links of a topology already."""
    return Protocol(
        name=name,
        launch_latency=launch * 1e-6,
        inside_latency=(inside - 0.6) * 1e-6,
        between_latency=(between - 2.7) * 1e-6,
        bandwidth_fraction=fraction,
    )


_RING = (
    _protocol("LL", 6.6, 0.6, 2.7, 1 / 4),
    _protocol("LL128", 14.0, 1.9, 4.0, 0.92),
    _protocol("Simple", 8.4, 3.4, 14.0, 1.0),
)
_TREE = (
    _protocol("LL", 6.8, 0.6, 5.0, 0.92 / 3.8),
    _protocol("LL128", 14.0, 1.25, 8.5, 0.92 * 120 / 128),
    _protocol("Simple", 0.0, 28.0, 28.0, 0.92),
)
_MESSAGES = (_RING[0], _RING[2])  # sends and receives have no LL128

NCCL: Mapping[str, tuple[Protocol, ...]] = {
    "ring": _RING,
    "hierarchical": _RING,
    "tree": _TREE,
    "barrier": _TREE,
    "direct": _MESSAGES,
    "point_to_point": _MESSAGES,
}
"""Protocols by algorithm: ``baseLat``, ``hwLat`` (NVLink, network) and fractions of NCCL 2.22, ``src/graph/tuning.cc``.

Left out: its caps on bandwidth by GPU generation, other numbers for PCIe (a step of Simple takes 5.7 us there, and
LL128 is off), the third that LL reaches in all-gather on one node. Assumed: that messages between pairs cost what a
step of a ring does, and that RCCL, a fork, costs the same.
"""
