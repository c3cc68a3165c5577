"""A block: the part of a model between two tensor-parallel collectives."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clustersim.workload.activations import Recompute
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Compute

__all__ = ["Block", "again"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """What a block computes, keeps and needs for one micro-batch on one rank.

    Parameters
    ----------
    kind : str
        ``norm``, ``attention``, ``mlp`` …
    forward : Compute
    backward : Compute, optional
        ends with the gradient of the block's input; None where the gradient just passes through
    weight_gradient : Compute, optional
        the rest of the backward pass, which needs the block's input but nothing later needs: it runs beside the
        reduction of the input's gradient
    core : Compute, optional
        what selective recomputation runs again before ``backward``
    parameters : int
        weights on this rank
    replicated_parameters : int
        of these, weights that every tensor-parallel rank holds
    matrices : tuple[Matrix, ...]
        of the parameters, those that are matrices; query, key and value and gate and up each by itself
    gathers : bool
        reads the whole sequence, column-parallel: gathered before under sequence parallelism; its input's
        gradient is a partial sum
    reduces : bool
        row-parallel: its output is a partial sum
    produces : bool
        its output is the residual stream, which the next block keeps
    kept : int
        from forward to backward [B]
    core_kept : int
        of these, what selective recomputation drops [B]
    forward_workspace, backward_workspace : int
        held only while it runs [B]
    """

    kind: str
    forward: Compute
    backward: Compute | None = None
    weight_gradient: Compute | None = None
    core: Compute | None = None
    parameters: int = 0
    replicated_parameters: int = 0
    matrices: tuple[Matrix, ...] = ()
    gathers: bool = False
    reduces: bool = False
    produces: bool = False
    kept: int = 0
    core_kept: int = 0
    forward_workspace: int = 0
    backward_workspace: int = 0

    def held(self, recompute: Recompute) -> int:
        """Bytes that its backward pass starts from, on top of the chunk's residual stream."""
        return self.kept - (self.core_kept if recompute == "selective" else 0)


def again(op: Compute) -> Compute:
    """``op`` as work done a second time to save memory."""
    return replace(op, name=op.name.replace("forward", "recompute"), recomputed=True)
