"""Which chunk of the model stands where: the ways that micro-batches take over the stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Placement", "bidirectional", "loop", "vee"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """The routes that lead through the chunks of all stages.

    Position k of a route of n holds the k-th n-th of the model, so each route holds the whole model once. A micro-batch
    passes one route from its first position to its last, and back.

    Parameters
    ----------
    routes : tuple[tuple[tuple[int, int], ...], ...]
        for each route its (stage, chunk) pairs in order; those of all routes are each stage's each chunk once

    Attributes
    ----------
    num_stages : int
        stages that the routes lead over
    num_virtual : int
        chunks a stage

    Raises
    ------
    ValueError
        when the pairs are not all chunks of all stages, each once
    """

    routes: tuple[tuple[tuple[int, int], ...], ...]
    num_stages: int = field(init=False, repr=False, compare=False)
    num_virtual: int = field(init=False, repr=False, compare=False)
    _positions: Mapping[tuple[int, int], tuple[int, int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        places = [place for route in self.routes for place in route]
        positions = {place: (r, k) for r, route in enumerate(self.routes) for k, place in enumerate(route)}
        stages, chunks = ({place[i] for place in places} for i in (0, 1))
        whole = {(s, c) for s in range(len(stages)) for c in range(len(chunks))}
        if not places or len(places) != len(positions) or whole != set(positions):
            raise ValueError(f"routes: {self.routes} must visit each chunk of each stage once, both counted from 0")
        object.__setattr__(self, "num_stages", len(stages))
        object.__setattr__(self, "num_virtual", len(chunks))
        object.__setattr__(self, "_positions", positions)

    def position(self, stage: int, chunk: int) -> tuple[int, int]:
        """Route of a chunk, and its position there.

        Raises
        ------
        KeyError
            when there is no such stage or chunk
        """
        return self._positions[stage, chunk]

    def before(self, stage: int, chunk: int) -> tuple[int, int] | None:
        """(stage, chunk) that activations come from; None at the first position."""
        route, k = self._positions[stage, chunk]
        return self.routes[route][k - 1] if k else None

    def after(self, stage: int, chunk: int) -> tuple[int, int] | None:
        """(stage, chunk) that gradients come from; None at the last position."""
        route, k = self._positions[stage, chunk]
        return self.routes[route][k + 1] if k + 1 < len(self.routes[route]) else None


def loop(num_stages: int, num_virtual: int) -> Placement:
    """One route that passes all stages ``num_virtual`` times: chunk c of stage s is position c·p + s of p stages."""
    return Placement(routes=(tuple((s, c) for c in range(num_virtual) for s in range(num_stages)),))


def vee(num_stages: int, num_virtual: int = 2) -> Placement:
    """One route down the stages and up again: stage s holds positions s and 2·p - 1 - s.

    Raises
    ------
    ValueError
        when ``num_virtual`` is not 2

    References
    ----------
    Qi et al., Pipeline Parallelism with Controllable Memory, 2024 (arXiv 2405.15362).
    """
    _two("vee", num_virtual)
    down = [(s, 0) for s in range(num_stages)]
    return Placement(routes=((*down, *((s, 1) for s in reversed(range(num_stages)))),))


def bidirectional(num_stages: int, num_virtual: int = 2) -> Placement:
    """Two routes, one down and one up the stages; every stage holds weights of two places of the model.

    Chunk 0 of stage s is position s of route 0, chunk 1 is position p - 1 - s of route 1.

    Raises
    ------
    ValueError
        when ``num_virtual`` is not 2

    References
    ----------
    Li and Hoefler, Chimera, 2021 (arXiv 2107.06925); DeepSeek-AI, DeepSeek-V3 Technical Report, 2024.
    """
    _two("bidirectional", num_virtual)
    down = tuple((s, 0) for s in range(num_stages))
    return Placement(routes=(down, tuple((s, 1) for s in reversed(range(num_stages)))))


def _two(name: str, num_virtual: int) -> None:
    if num_virtual != 2:
        raise ValueError(f"num_virtual: {num_virtual} must be 2 for a {name} placement")
