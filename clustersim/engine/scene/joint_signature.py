"""The signature of a collective, and of each of its phases."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from clustersim.engine.scene.signature import Demand, Signature
from clustersim.engine.system.system import System

__all__ = ["joint_signature"]


def joint_signature(system: System, b: int, g: int, s: int, demands: Sequence[Sequence[Demand]]) -> Signature:
    """Signature of a collective.

    Parameters
    ----------
    b, g, s : int
        block, group of the block, signature of the group
    demands : Sequence[Sequence[Demand]]
        of each of its phases
    """
    block = system.blocks[b]
    what, cost = block.traffic[s], block.cost.by_phase
    mine = cost.phases.of_signature(s)
    bound = system.group_bound(b, g, s)
    phases = [
        Signature(
            ns=ns,
            demands=tuple(of_phase),
            peak_load=max(1, peak),
            num_flows=what.num_flows,
            num_sms=what.num_sms,
            bound=bound,
            phase=number,
        )
        for number, (ns, peak, of_phase) in enumerate(
            zip(cost.ns[g, mine].tolist(), cost.peak_load[g, mine].tolist(), demands, strict=True)
        )
    ]
    if len(phases) == 1:
        return phases[0]
    for phase, then in pairwise(phases):
        phase.then = then
    total: dict[int, tuple[int, int]] = {}
    for r, load, w in (demand for of_phase in demands for demand in of_phase):
        total[r] = total.get(r, (0, 0))[0] + load, total.get(r, (0, 0))[1] + w
    return Signature(
        ns=sum(phase.ns for phase in phases),
        demands=tuple((r, load, w) for r, (load, w) in total.items()),
        num_sms=what.num_sms,
        bound=bound,
        phases=tuple(phases),
    )
