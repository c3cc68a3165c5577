"""A schedule: the transfers of one collective, what each carries and what it waits for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from clustersim.collective.checks import require_call
from clustersim.collective.traffic import GroupShape
from clustersim.faults import BadInput, Fault

__all__ = ["Schedule", "Script", "Stepper", "Transfer", "require_steps"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Transfer:
    """One message.

    Parameters
    ----------
    source, destination : int
        positions in the group
    chunks : tuple[int, ...]
        what it carries
    adds : bool
        True: the receiver adds it to what it has; False: it replaces what it has
    channel : int
        messages of one channel from one member to another go one after the other, in the order of the schedule
    after : tuple[int, ...]
        transfers that must have arrived before this one starts, earlier ones of the schedule
    """

    source: int
    destination: int
    chunks: tuple[int, ...]
    adds: bool
    channel: int
    after: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Schedule:
    """What an algorithm does for one collective.

    Parameters
    ----------
    algorithm, kind : str
    chunk_nbytes : NDArray[int64], shape (num_chunks,)
        [B]
    held : NDArray[bool], shape (n, num_chunks)
        chunks to which each member contributes before the first transfer
    wanted : NDArray[bool], shape (n, num_chunks)
        chunks that each member has after the last one: the sum of all contributions to it
    transfers : tuple[Transfer, ...]
        in an order in which they could run one at a time
    """

    algorithm: str
    kind: str
    chunk_nbytes: NDArray[np.int64]
    held: NDArray[np.bool_]
    wanted: NDArray[np.bool_]
    transfers: tuple[Transfer, ...]

    @property
    def num_members(self) -> int:
        """Number of ranks in the group."""
        return len(self.held)

    def nbytes(self) -> NDArray[np.int64]:
        """Bytes of each transfer, shape (num_transfers,) [B]."""
        return np.array([self.chunk_nbytes[list(t.chunks)].sum() for t in self.transfers], dtype=np.int64)


Stepper = Callable[[str, int, GroupShape, int], Schedule]
"""(kind, nbytes, shape, num_slices) -> Schedule; ``nbytes`` as in :data:`clustersim.collective.traffic.Algorithm`,
``num_slices`` into how many messages each block is cut so that a block can be passed on before all of it is there."""


class Script:
    """Transfers written down one by one; what each waits for follows from the chunks.

    Of two transfers that touch the same chunk of the same member the later one waits for the earlier one, unless both
    only read it or both add to it.

    Parameters
    ----------
    num_members : int
    chunk_nbytes : Sequence[int]
        [B]
    """

    def __init__(self, num_members: int, chunk_nbytes: Sequence[int]) -> None:
        self.shape = num_members, len(chunk_nbytes)
        self.chunk_nbytes = np.array(chunk_nbytes, dtype=np.int64)
        self.transfers: list[Transfer] = []
        self._written: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self._read: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    def send(
        self,
        source: int,
        destination: int,
        chunks: Iterable[int],
        *,
        adds: bool,
        channel: int = 0,
        after: Iterable[int] = (),
    ) -> int:
        """Write down one transfer and return its number."""
        number, chunks, before = len(self.transfers), tuple(chunks), set(after)
        for chunk in chunks:
            here, there = (source, chunk), (destination, chunk)
            before.update(self._written[here], self._read[there])
            if not adds:
                before.update(self._written[there])
                self._written[there] = []
                self._read[there] = []
            elif self._read[there]:
                self._written[there] = []  # what comes after the reads comes after what they waited for
                self._read[there] = []
            self._written[there].append(number)
            self._read[here].append(number)
        self.transfers.append(
            Transfer(
                source=source,
                destination=destination,
                chunks=chunks,
                adds=adds,
                channel=channel,
                after=tuple(sorted(before)),
            )
        )
        return number

    def schedule(self, algorithm: str, kind: str, held: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> Schedule:
        """All that was written down; ``held`` and ``wanted`` as in :class:`Schedule`, or what broadcasts to it."""
        return Schedule(
            algorithm=algorithm,
            kind=kind,
            chunk_nbytes=self.chunk_nbytes,
            held=np.broadcast_to(held, self.shape),
            wanted=np.broadcast_to(wanted, self.shape),
            transfers=tuple(self.transfers),
        )


def require_steps(algorithm: str, kind: str, nbytes: int, kinds: Sequence[str], num_slices: int) -> None:
    """Raise :class:`BadInput` unless the call is one of ``algorithm`` and there is a slice at least."""
    require_call(algorithm, kind, nbytes, kinds)
    if num_slices < 1:
        raise BadInput([Fault(key="num_slices", value=num_slices, rule="must be positive", nearest=1)])
