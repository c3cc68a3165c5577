"""A fragment: the ops of one chunk for one micro-batch, and the chain that writes it.

Ops stand on two streams, ``compute`` and ``tp``. Bytes are counted under three keys: ``gpu/activations`` from forward
to backward, ``gpu/workspace`` while an op runs, ``gpu/communication`` for what is on its way to or from another stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clustersim.workload.op import Compute, Op
from clustersim.workload.program import Program

__all__ = ["ACTIVATIONS", "COMMUNICATION", "WORKSPACE", "Chain", "Fragment"]

ACTIVATIONS, WORKSPACE, COMMUNICATION = "gpu/activations", "gpu/workspace", "gpu/communication"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fragment:
    """A chunk's ops.

    Parameters
    ----------
    program : Program
    entries : tuple[int, ...]
        ops that wait for the chunk's input
    exit : int
        op whose end gives the chunk's output
    op_of_block : tuple[int, ...]
        forward: the block's first op, which its weights must be there for; backward: the op that completes their
        gradient, -1 where the block has no backward pass
    """

    program: Program
    entries: tuple[int, ...]
    exit: int
    op_of_block: tuple[int, ...]


class Chain:
    """Writes ops that wait for each other.

    Parameters
    ----------
    stage : int
        virtual stage, for the trace
    phase : str
        ``forward`` or ``backward``

    Attributes
    ----------
    last : list[int]
        the op that the next one waits for; empty at the beginning
    """

    def __init__(self, *, stage: int, phase: str) -> None:
        self.last: list[int] = []
        self._program = Program(f"virtual stage {stage} {phase}")
        self._entries: list[int] = []
        self._streams: list[str] = []
        self._stage = stage
        self._phase = phase

    def add(
        self, op: Op, *, layer: int, start: Mapping[str, int] | None = None, end: Mapping[str, int] | None = None
    ) -> int:
        """Put an op after the last one, whose place it takes."""
        number = self.beside(op, after=self.last, layer=layer, start=start, end=end)
        self.last = [number]
        return number

    def beside(
        self,
        op: Op,
        *,
        after: Iterable[int],
        layer: int,
        start: Mapping[str, int] | None = None,
        end: Mapping[str, int] | None = None,
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

        Returns
        -------
        int
            its number
        """
        after = list(after)
        stream = "compute" if isinstance(op, Compute) else "tp"
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
        if not after:
            self._entries.append(number)
        return number

    def fragment(self, op_of_block: Sequence[int]) -> Fragment:
        """What was written; every chunk has at least one block."""
        return Fragment(
            program=self._program,
            entries=tuple(self._entries),
            exit=self.last[0],
            op_of_block=tuple(op_of_block),
        )
