"""A simulated group: who takes part in its collectives, and who has arrived."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from clustersim.engine.scene.scene import RendezvousSpec

if TYPE_CHECKING:
    from clustersim.engine.loop.lane import Lane

__all__ = ["Rendezvous"]


class Rendezvous:
    """A simulated group.

    Attributes
    ----------
    pending : array of int32
        by collective, members that have not arrived
    script : array of int32
        by collective, its signature
    members : list[tuple[Lane, array of int32]]
        each arriving lane with its ops, by collective
    """

    __slots__ = ("members", "pending", "script", "signatures", "spec")

    def __init__(self, spec: RendezvousSpec, script: array[int], members: list[tuple[Lane, array[int]]]) -> None:
        self.spec = spec
        self.signatures = spec.signatures
        self.script = script
        self.pending = array("i", [len(members)]) * len(script)
        self.members = members
