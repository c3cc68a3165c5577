"""A block: the part of a model between two tensor-parallel collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from clustersim.workload.layers.piece import Piece, fused
from clustersim.workload.matrix import Matrix
from clustersim.workload.op import Collective, Compute
from clustersim.workload.recompute import Recomputation

__all__ = ["Block", "Part", "again"]

Arrange = Callable[[Sequence[Piece]], tuple[Piece, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What a block can compute again by itself, just before its backward pass.

    Parameters
    ----------
    name : str
        of :data:`clustersim.workload.recompute.MODULES`
    op : Compute, Collective or tuple[Piece, ...]
        its forward pass
    kept : int
        bytes that need not be kept then [B]
    within : tuple[str, ...]
        larger parts that compute it again too: when one of them is chosen, this one is not
    """

    name: str
    op: Compute | Collective | tuple[Piece, ...]
    kept: int
    within: tuple[str, ...] = ()

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Its forward pass, done a second time."""
        pieces = self.op if isinstance(self.op, tuple) else (Piece(op=self.op),)
        return tuple(replace(piece, op=again(piece.op)) for piece in pieces)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """What a block computes, keeps and needs for one micro-batch on one rank.

    Parameters
    ----------
    kind : str
        ``norm``, ``attention``, ``mlp`` …
    forward : tuple[Piece, ...]
    backward : tuple[Piece, ...]
        with the gradients of the weights where they stand when nothing is put off; empty where the gradient just
        passes through. A gradient of weights that stands last runs beside the reduction of the input's gradient
    parts : tuple[Part, ...]
        what can be computed again by itself
    parameters : int
        weights on this rank that every data-parallel rank holds
    replicated_parameters : int
        of these, weights that every tensor-parallel rank holds
    until_kept : tuple[Piece, ...]
        its forward pass up to the last tensor that is kept, where that is not all but its last product
    expert_matrices : tuple[Matrix, ...]
        of those of experts
    expert_parameters : int
        weights of experts on this rank, which only ranks with the same experts hold; not in ``parameters``
    frozen_parameters : int
        weights on this rank that are not trained; in neither of the others
    dtype : str
        recipe whose operands the products have that read its input; empty: the job's
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
    weight_kept : int
        what the gradients of weights read when they are put off: the inputs of the block's matrices and the gradients
        of their outputs [B]
    forward_workspace, backward_workspace : int
        held only while it runs [B]
    """

    kind: str
    forward: tuple[Piece, ...]
    backward: tuple[Piece, ...] = ()
    parts: tuple[Part, ...] = ()
    parameters: int = 0
    replicated_parameters: int = 0
    expert_parameters: int = 0
    frozen_parameters: int = 0
    until_kept: tuple[Piece, ...] = ()
    expert_matrices: tuple[Matrix, ...] = ()
    dtype: str = ""
    matrices: tuple[Matrix, ...] = ()
    gathers: bool = False
    reduces: bool = False
    produces: bool = False
    kept: int = 0
    weight_kept: int = 0
    forward_workspace: int = 0
    backward_workspace: int = 0

    def again(self, recompute: Recomputation) -> tuple[Part, ...]:
        """The parts that are computed again under a setting."""
        chosen = recompute.modules
        return tuple(part for part in self.parts if part.name in chosen and not chosen & set(part.within))

    def held(self, recompute: Recomputation) -> int:
        """Bytes that its backward pass starts from, on top of the chunk's residual stream."""
        return self.kept - sum(part.kept for part in self.again(recompute))

    def whole_backward(self, *, apart: bool, arranged: Arrange = fused) -> tuple[tuple[Piece, ...], Compute | None]:
        """The backward pass when nothing is put off, and the gradient of weights that may run beside what follows.

        Parameters
        ----------
        apart : bool
            something follows that the last gradient of weights need not wait for
        arranged : Callable
            what becomes of the pieces; by default, kernels that follow one another become one op
        """
        last = self.backward[-1] if self.backward else None
        if apart and last is not None and last.weight and last.after is None and isinstance(last.op, Compute):
            return arranged(self.backward[:-1]), last.op
        return arranged(self.backward), None

    def input_backward(self, *, arranged: Arrange = fused) -> tuple[Piece, ...]:
        """The backward pass without gradients of weights; what waits for one waits for the piece before it."""
        place: dict[int, int] = {}
        found: list[Piece] = []
        for n, piece in enumerate(self.backward):
            if not piece.weight:
                after = None if piece.after is None else tuple(place[k] for k in piece.after if k in place)
                found.append(replace(piece, after=after))
            place[n] = max(0, len(found) - 1)
        return arranged(found)

    def weight_backward(self) -> tuple[Piece, ...]:
        """The gradients of weights by themselves."""
        return fused([replace(piece, after=None) for piece in self.backward if piece.weight])


def again(op: Compute | Collective) -> Compute | Collective:
    """``op`` as work done a second time to save memory."""
    name = op.name.replace("forward", "recompute")
    return replace(op, name=name, recomputed=True) if isinstance(op, Compute) else replace(op, name=name)
