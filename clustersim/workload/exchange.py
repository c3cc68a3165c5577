"""An exchange: what an all-to-all of tokens takes where, when it is more than equal parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Literal

from clustersim.workload.shape.experts import Experts

__all__ = ["Dispatch", "Exchange"]

Dispatch = Literal["all_to_all", "hierarchical", "deepep", "hybridep"]
"""Ways to send tokens to experts, see :data:`clustersim.workload.routing.DISPATCHES`."""


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """Stands in the place of an algorithm of a collective; the engine lays it out on the nodes. Equal by content.

    Parameters
    ----------
    share : Sequence[Sequence[float]], shape (n, n)
        fractions of the payload that the row's member sends to the column's; empty: equal parts
    experts : Experts, optional
        tokens go to each node, and there to each member, once, however many of their experts are there
    back : bool
        the flows turned round: what was sent there comes back; the payload is still that of the way there
    """

    share: tuple[tuple[float, ...], ...]
    experts: Experts | None
    back: bool
    _digest: bytes

    def __init__(
        self, *, share: Sequence[Sequence[float]] = (), experts: Experts | None = None, back: bool = False
    ) -> None:
        rows = tuple(tuple(row) for row in share)
        object.__setattr__(self, "share", rows)
        object.__setattr__(self, "experts", experts)
        object.__setattr__(self, "back", back)
        object.__setattr__(self, "_digest", sha256(repr((rows, experts, back)).encode()).digest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exchange) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        parts = f"{len(self.share)} members" if self.share else "equal parts"
        once = ", once a node" if self.experts else ""
        return f"Exchange({parts}{once}{', back' if self.back else ''}, {self._digest.hex()[:16]})"

    def turned(self) -> Exchange:
        """The way back."""
        return Exchange(share=self.share, experts=self.experts, back=not self.back)
