"""ZeRO-1 within groups of neighbours: each group holds the whole optimizer state, every gradient is summed over all."""

from __future__ import annotations

from dataclasses import dataclass

from clustersim.workload.sharding.movement import Movement, Over, reduction
from clustersim.workload.sharding.sharding import Sharding

__all__ = ["ZeroWithin"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ZeroWithin:
    """A strategy: optimizer state split over ``inner`` neighbours, the splits repeated over the others.

    Gradients are summed by an all-reduce over all ranks, with weights of w bytes gathered within a group::

        g·P (all-reduce over all ranks) + w·P (all-gather over ``inner``)

    Parameters
    ----------
    inner : int
        ranks that share one copy of the optimizer state
    weight, gradient : int
        bytes of a weight as it is gathered and of a gradient as it is reduced [B]

    References
    ----------
    InternEvo, ``solver/optimizer/hybrid_zero_optim.py``: ``reduce_rank`` is None, so that gradients are all-reduced
    over ``ParallelMode.DATA``; weights are broadcast within ``ParallelMode.ZERO1``, each rank its own.
    """

    inner: int
    weight: int
    gradient: int

    def __call__(self, ranks: int) -> Sharding:
        """The sharding of so many ranks.

        Raises
        ------
        ValueError
            when ``inner`` does not divide them
        """
        inner = min(self.inner, ranks)
        if ranks % inner:
            raise ValueError(f"inner: {self.inner} must divide the {ranks} ranks")
        summed = reduction("all_reduce", gradient=self.gradient, reduced=None)
        over: Over = "all" if inner == ranks else "inner"
        gather = Movement(kind="all_gather", what="weights", nbytes=self.weight, over=over)
        return Sharding(
            name=f"zero-1 within {inner}",
            optimizer=inner,
            reduce=(summed,) if ranks > 1 else (),
            refresh=(gather,) if inner > 1 else (),
            inner=1 if inner == ranks else inner,
        )
