"""The signatures of a lane's own ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clustersim.engine.scene.signature import Demand, Signature
from clustersim.engine.system.system import System

__all__ = ["own_signatures"]


def own_signatures(
    system: System, program: int, kind: int, demands: Callable[[int, int], Sequence[Demand]]
) -> list[Signature | None]:
    """Signatures by distinct op of a program on one kind of device; None for a collective.

    Parameters
    ----------
    system : System
    program, kind : int
    demands : Callable[[int, int], Sequence[Demand]]
        of an op, by its number and its load on its busiest path [B]
    """
    signatures: list[Signature | None] = []
    for k, cost in enumerate(system.local[program, kind]):
        if cost is None:
            signatures.append(None)
            continue
        peak = system.peak_load(program, k)
        asked = tuple(demands(k, peak))
        signatures.append(Signature(ns=cost.ns, sm_ns=cost.crowded_ns, demands=asked, peak_load=peak, bound=cost.bound))
    return signatures
