"""Local SGD and DiLoCo: workers train by themselves and exchange what they learned every so many steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clustersim.workload.sharding.movement import Movement
from clustersim.workload.sharding.sharding import Sharding, Strategy

__all__ = ["local_sgd"]

_FP32 = 4


def local_sgd(
    ranks: int,
    *,
    inside: Strategy,
    worker: int,
    every: int,
    master: int,
    weight: int,
    exchanged: int = _FP32,
    momentum: bool = True,
) -> Sharding:
    """``every`` steps inside each worker, then one exchange between workers.

    With ``momentum`` (DiLoCo) the workers average how far their weights have moved since the last exchange and take a
    Nesterov step with that: fp32 momentum and the weights of the last exchange are kept, 8 bytes a parameter. Without
    (local SGD), they average the weights. Either way a rank exchanges what its share of the optimizer state updates,
    and the next step waits for it: exchanges that overlap with steps are another strategy.

    Parameters
    ----------
    ranks : int
        a multiple of ``worker``
    inside : Strategy
        of the ranks of one worker, without inner groups of its own
    worker : int
        ranks of one worker
    every : int
        steps from one exchange to the next
    master, weight : int
        bytes of a weight as the optimizer updates it, and as it is kept beside that [B]
    exchanged : int
        bytes of a parameter in the exchange [B]
    momentum : bool

    References
    ----------
    Stich, Local SGD Converges Fast and Communicates Little, 2018, algorithm 1.
    Douillard et al., DiLoCo: Distributed Low-Communication Training of Language Models, 2023, algorithm 1.
    """
    worker = min(worker, ranks)
    base = inside(worker)
    if worker == ranks:
        return base
    written = master + (weight if weight != master else 0)
    exchange = Movement(
        kind="all_reduce",
        what="parameters",
        nbytes=exchanged,
        over="all" if worker == 1 else "outer",
        share=base.optimizer,
        before=master + (_FP32 if momentum else 0) + exchanged,
        after=exchanged + written + (4 * _FP32 if momentum else 0),
    )
    return replace(
        base,
        name=f"{'diloco' if momentum else 'local sgd'} over {base.name}",
        gather=_inside(base.gather, worker),
        gather_again=_inside(base.gather_again, worker),
        reduce=_inside(base.reduce, worker),
        refresh=_inside(base.refresh, worker),
        inner=worker,
        sync_every=every,
        exchange=(exchange,),
        exchange_state=2 * _FP32 if momentum else 0.0,
    )


def _inside(moves: Sequence[Movement], worker: int) -> tuple[Movement, ...]:
    return tuple(replace(move, over="inner") for move in moves) if worker > 1 else ()
