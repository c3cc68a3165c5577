"""A fragment: the ops of one chunk for one micro-batch, and the chain that writes it.

Kernels stand on the stream ``compute``, collectives on one stream for each slot, the host's work on ``cpu work``. Bytes
are counted under these keys: ``gpu/activations`` from forward to backward, ``gpu/workspace`` while an op runs,
``gpu/communication`` for what is on its way to or from another stage, ``gpu/weights`` and ``gpu/gradients`` for
gathered weights and for gradients that are yet to be reduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from clustersim.workload.layers.piece import Piece
from clustersim.workload.op import Collective, Compute, Copy, HostWork, Op, Storage
from clustersim.workload.program import Program

__all__ = ["ACTIVATIONS", "COMMUNICATION", "GRADIENTS", "WEIGHTS", "WORKSPACE", "Chain", "Fragment", "stream_of"]

_Made = TypeVar("_Made")

ACTIVATIONS, WORKSPACE, COMMUNICATION = "gpu/activations", "gpu/workspace", "gpu/communication"
WEIGHTS, GRADIENTS = "gpu/weights", "gpu/gradients"


def stream_of(op: Op) -> str:
    """The stream of an op: ``compute``, a collective's slot, ``h2d`` and ``d2h``, ``nvme_read`` …, or ``cpu work``."""
    match op:
        case Collective():
            return op.slot
        case Copy() | Storage():
            return op.kind
        case HostWork():
            return "cpu work"
        case _:
            return "compute"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fragment:
    """A chunk's ops.

    Parameters
    ----------
    program : Program
    entries : tuple[int, ...]
        ops that wait for the chunk's input
    early : tuple[int, ...]
        ops that need not wait for it: weights that are gathered ahead
    exits : tuple[int, ...]
        ops whose end gives the chunk's output
    op_of_block : tuple[int, ...]
        forward: the block's first op, which its weights must be there for; backward: the op that completes their
        gradient, -1 where the fragment has none
    takes : tuple[tuple[int, tuple[int, ...]], ...]
        ops that gather weights, in order, each the first of its parameter group, with the group's blocks
    gives : tuple[int, ...]
        ops whose end gives gathered weights back, in order
    room : int, optional
        parameter groups that may be gathered at a time; None: any number
    fills : tuple[int, ...]
        first ops of the backward passes of parameter groups that make gradients to be reduced, in order
    drains : tuple[int, ...]
        ops whose end leaves these gradients reduced, in order
    leaves, returns : tuple[tuple[int, int], ...]
        (first block of a layer, op that takes its activations off the GPU, or brings them back)
    """

    program: Program
    entries: tuple[int, ...]
    exits: tuple[int, ...]
    op_of_block: tuple[int, ...]
    early: tuple[int, ...] = ()
    takes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    gives: tuple[int, ...] = ()
    room: int | None = None
    fills: tuple[int, ...] = ()
    drains: tuple[int, ...] = ()
    leaves: tuple[tuple[int, int], ...] = ()
    returns: tuple[tuple[int, int], ...] = ()


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
        as in :class:`Fragment`
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
