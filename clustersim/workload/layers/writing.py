"""Writing the pieces of a block one by one, where they do not simply follow one another."""

from __future__ import annotations

from collections.abc import Sequence

from clustersim.hardware.kernel import Kernel
from clustersim.workload.layers.joined import joined
from clustersim.workload.layers.piece import Piece
from clustersim.workload.layers.product import Product
from clustersim.workload.op import Collective, Compute
from clustersim.workload.shard import Shard

__all__ = ["Writing"]


class Writing:
    """The pieces of one pass of a block.

    Parameters
    ----------
    kind : str
        of its kernels' ops
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._pieces: list[Piece] = []

    def kernels(self, name: str, *kernels: Kernel, after: tuple[int, ...] | None = None, weight: bool = False) -> int:
        """Put kernels after some pieces; None: as one op with those just before. Their number."""
        return self._add(Compute(name=name, kind=self._kind, kernels=kernels), after, weight=weight)

    def product(self, name: str, shard: Shard, product: Product) -> int:
        """Put a product that can take its tokens in parts after the last piece; its number."""
        op = Compute(name=name, kind=self._kind, kernels=product.kernels(shard))
        self._pieces.append(Piece(op=op, product=product))
        return len(self._pieces) - 1

    def collective(self, op: Collective, *, after: tuple[int, ...] | None = None) -> int:
        """Put a collective after some pieces; its number."""
        return self._add(op, after)

    def part(self, pieces: Sequence[Piece]) -> int:
        """Put pieces that were written apart after the last one so far; the number of their last."""
        self._pieces = [*joined(self._pieces, pieces)]
        return len(self._pieces) - 1

    def pieces(self) -> tuple[Piece, ...]:
        """What was written."""
        return tuple(self._pieces)

    def _add(self, op: Compute | Collective, after: tuple[int, ...] | None, *, weight: bool = False) -> int:
        self._pieces.append(Piece(op=op, after=after, weight=weight))
        return len(self._pieces) - 1
