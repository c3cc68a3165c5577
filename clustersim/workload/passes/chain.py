"""A chain: ops that wait for each other, written one by one into a fragment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from clustersim.workload.layers.piece import Piece
from clustersim.workload.op import Compute, Op
from clustersim.workload.passes.fragment import Fragment, stream_of
from clustersim.workload.program import Program

__all__ = ["Chain"]

_Made = TypeVar("_Made")


class Chain:
    """Writes ops that wait for each other.

    Parameters
    ----------
    stage : int
        virtual stage, for the trace
    phase : str
        ``forward``, ``backward``, ``backward input`` or ``backward weight``

    Attributes
    ----------
    last : list[int]
        the ops that the next one waits for; empty at the beginning
    compute : int
        the last op on the compute stream, -1 at the beginning
    takes : list[tuple[int, tuple[int, ...]]]
    gives, fills, drains : list[int]
    leaves, returns : list[tuple[int, int]]
    room : int, optional
        as in :class:`~clustersim.workload.passes.fragment.Fragment`
    """

    def __init__(self, *, stage: int, phase: str) -> None:
        self.last: list[int] = []
        self.compute = -1
        self.takes: list[tuple[int, tuple[int, ...]]] = []
        self.gives: list[int] = []
        self.fills: list[int] = []
        self.drains: list[int] = []
        self.leaves: list[tuple[int, int]] = []
        self.returns: list[tuple[int, int]] = []
        self.room: int | None = None
        self._known: dict[object, Any] = {}
        self._program = Program(f"virtual stage {stage} {phase}")
        self._entries: list[int] = []
        self._early: list[int] = []
        self._streams: list[str] = []
        self._stage = stage
        self._phase = phase

    def __len__(self) -> int:
        return len(self._program)

    def once(self, of: object, what: str, make: Callable[[], _Made]) -> _Made:
        """What equal blocks, which are one object, have in common: made for the first of them."""
        key = id(of), what
        if key not in self._known:
            self._known[key] = of, make()
        made: _Made = self._known[key][1]
        return made

    def add(
        self,
        op: Op,
        *,
        layer: int,
        start: Mapping[str, int] | None = None,
        end: Mapping[str, int] | None = None,
    ) -> int:
        """Put an op after the last ones, whose place it takes."""
        number = self.beside(op, after=self.last, layer=layer, start=start, end=end)
        self.last = [number]
        return number

    def write(
        self,
        pieces: Sequence[Piece],
        *,
        layer: int,
        start: Mapping[str, int] | None = None,
        end: Mapping[str, int] | None = None,
    ) -> list[int]:
        """Put the pieces of a block after the last ops; what none of them waits for is then last, but for weights.

        Parameters
        ----------
        pieces : Sequence[Piece]
            at least one
        layer : int
        start : Mapping[str, int], optional
            change of the bytes held when its first kernel starts
        end : Mapping[str, int], optional
            change when its last piece ends

        Returns
        -------
        list[int]
            the number of each piece
        """
        before = self.last
        numbers: list[int] = []
        first = next((n for n, piece in enumerate(pieces) if isinstance(piece.op, Compute)), 0)
        waited: set[int] = set()
        for n, piece in enumerate(pieces):
            after = ((n - 1,) if n else ()) if piece.after is None else piece.after
            waited |= set(after)
            numbers.append(
                self.beside(
                    piece.op,
                    after=[numbers[k] for k in after] or before,
                    layer=layer,
                    start=start if n == first else None,
                    end=end if n == len(pieces) - 1 else None,
                )
            )
        self.last = [number for n, number in enumerate(numbers) if n not in waited and not pieces[n].weight] or before
        return numbers

    def beside(
        self,
        op: Op,
        *,
        after: Iterable[int],
        layer: int,
        start: Mapping[str, int] | None = None,
        end: Mapping[str, int] | None = None,
        stream: str | None = None,
        early: bool = False,
    ) -> int:
        """Put an op after some others; the chain goes on from where it was.

        Those on its own stream come before it anyway and are not written down.

        Parameters
        ----------
        op : Op
        after : Iterable[int]
        layer : int
        start, end : Mapping[str, int]
            change of the bytes held, zeros left out
        stream : str, optional
            None: :func:`stream_of` it
        early : bool
            it does not wait for the chunk's input, nor does what waits for nothing else than it

        Returns
        -------
        int
            its number
        """
        after = list(after)
        if stream is None:
            stream = stream_of(op)
        number = self._program.add(
            op,
            stream=stream,
            after=[n for n in after if self._streams[n] != stream],
            start_bytes={k: n for k, n in (start or {}).items() if n},
            end_bytes={k: n for k, n in (end or {}).items() if n},
            phase=self._phase,
            layer=layer,
            stage=self._stage,
        )
        self._streams.append(stream)
        if stream == "compute":
            self.compute = number
        if early:
            self._early.append(number)
        elif all(n in self._early for n in after):
            self._entries.append(number)
        return number

    def fragment(self, op_of_block: Sequence[int]) -> Fragment:
        """What was written; every chunk has at least one block."""
        return Fragment(
            program=self._program,
            entries=tuple(self._entries),
            early=tuple(self._early),
            exits=tuple(self.last),
            op_of_block=tuple(op_of_block),
            takes=tuple(self.takes),
            gives=tuple(self.gives),
            room=self.room,
            fills=tuple(self.fills),
            drains=tuple(self.drains),
            leaves=tuple(self.leaves),
            returns=tuple(self.returns),
        )
