"""Weights that are gathered for their use and whose gradients are reduced as soon as they are there (ZeRO-3, FSDP)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustersim.workload.op import Compute, Op
from clustersim.workload.passes.chain import Chain
from clustersim.workload.passes.fragment import GRADIENTS, WEIGHTS, stream_of

__all__ = ["GRADIENT_ROOM", "ParameterGroup", "Traffic"]

GRADIENT_ROOM = 2
"""Parameter groups whose gradients are held whole at a time: one being computed, one being reduced."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterGroup:
    """Neighbouring blocks of a chunk whose weights travel together.

    Parameters
    ----------
    blocks : tuple[int, ...]
        in forward order
    gather, gather_again : tuple[Op, ...]
        what brings the weights here before the forward and before the backward pass, one after the other; empty where
        they are here anyway
    reduce : tuple[Op, ...]
        what becomes of the gradients when the backward pass is through the blocks; empty where they are kept
    store : tuple[Op, ...]
        what becomes of them when they have left the GPU by ``reduce``
    waits : int, optional
        the backward pass goes on when the gradients have left and so many ops of ``store`` are through; None: it does
        not wait
    gathered_nbytes : int
        held from the gathering to the last use [B]
    gradient_nbytes : int
        gradients held from the first of them until they are reduced [B]
    keeps : bool
        what the forward pass gathered is kept for the backward pass, which then gathers nothing
    copy_out, copy_in : Compute, optional
        kernels between the gathering and the first use, and between the last gradient and the reduction
    bounded : bool
        its gathering waits until no more than so many groups are here as may be gathered ahead
    """

    blocks: tuple[int, ...]
    gather: tuple[Op, ...] = ()
    gather_again: tuple[Op, ...] = ()
    reduce: tuple[Op, ...] = ()
    store: tuple[Op, ...] = ()
    waits: int | None = None
    gathered_nbytes: int = 0
    gradient_nbytes: int = 0
    keeps: bool = False
    copy_out: Compute | None = None
    copy_in: Compute | None = None
    bounded: bool = True

    @property
    def travels(self) -> bool:
        """Anything is brought or sent while the passes run."""
        return bool(self.gather or self.gather_again or self.reduce)


class Traffic:
    """Writes the collectives of parameter groups around a chunk's blocks.

    A group's backward pass begins when the reduction of the second one before it is through: one gradient is being
    computed while one is being reduced.

    Parameters
    ----------
    chain : Chain
    groups : Sequence[ParameterGroup]
        of the chunk
    order : Sequence[int]
        the blocks that the pass goes through, in its order
    prefetch : int
        groups whose gathering may run ahead of the one in use
    backward : bool

    References
    ----------
    PyTorch, FSDP notes (order of gathers and reductions), and ``torch/distributed/fsdp``: the rate limiter of FSDP1,
    which lets one group be gathered beside the one in use, and ``post_backward`` of FSDP2, which waits for the last
    reduction before it starts the next. DeepSpeed's ``contiguous_gradients`` has two buffers likewise.
    """

    def __init__(
        self, chain: Chain, groups: Sequence[ParameterGroup], order: Sequence[int], *, prefetch: int, backward: bool
    ) -> None:
        self._chain, self._prefetch, self._backward = chain, prefetch, backward
        passed = [(g, [i for i in order if i in g.blocks]) for g in groups]
        starts = {blocks[0]: g for g, blocks in passed if blocks}
        self._order = [starts[i] for i in order if i in starts]
        self._place = {block: n for n, g in enumerate(self._order) for block in g.blocks}
        self._ends = {blocks[-1]: self._place[blocks[-1]] for _, blocks in passed if blocks}
        self._starts = {block: self._place[block] for block in starts}
        self._arrival: list[list[int]] = []
        self._done: list[int] = []

    def open(self, block: int) -> Mapping[str, int]:
        """Before a block: issue what may be gathered by now, and let the chain wait for the block's own weights.

        Returns
        -------
        Mapping[str, int]
            bytes taken when the block starts
        """
        place = self._starts.get(block)
        if place is None:
            return {}
        while len(self._arrival) <= min(place + self._prefetch, len(self._order) - 1):
            self._gather(len(self._arrival))
        self._chain.last = [*self._chain.last, *self._arrival[place], *self._chain.drains[-GRADIENT_ROOM:][:-1]]
        group = self._order[place]
        if group.copy_out and self._arrival[place]:
            held = group.gathered_nbytes
            self._chain.add(group.copy_out, layer=-1, start={WEIGHTS: held}, end={WEIGHTS: -held})
        if self._backward and group.reduce and group.gradient_nbytes:
            self._chain.fills.append(len(self._chain))
        return {GRADIENTS: group.gradient_nbytes} if self._backward and group.reduce else {}

    def freed(self, block: int) -> Mapping[str, int]:
        """Bytes given back when a block ends."""
        place = self._ends.get(block)
        if place is None:
            return {}
        group = self._order[place]
        stays = group.keeps and not self._backward
        return {} if stays else {WEIGHTS: -group.gathered_nbytes}

    def close(self, block: int, ready: list[int]) -> None:
        """After a block: note that its group is done with, and reduce its gradients.

        Parameters
        ----------
        block : int
        ready : list[int]
            for each block the op that completes its gradients, -1 where there is none; set to the reduction
        """
        place = self._ends.get(block)
        if place is None:
            return
        self._done.append(self._chain.compute)
        group = self._order[place]
        if group.gathered_nbytes and not (group.keeps and not self._backward):
            self._chain.gives.append(self._chain.compute)
        if not self._backward or not group.reduce:
            return
        after = sorted({ready[b] for b in group.blocks if ready[b] >= 0})
        if group.copy_in:
            after = [self._chain.beside(group.copy_in, after=after, layer=-1)]
        left = self._serial(group.reduce, after, end={GRADIENTS: -group.gradient_nbytes})[-1]
        if group.gradient_nbytes:
            self._chain.drains.append(left)
        stored = [left, *(self._serial(group.store, [left]) if group.store else ())]
        for b in group.blocks:
            ready[b] = stored[-1]
        if group.waits is not None:
            self._chain.last = [*self._chain.last, stored[group.waits]]

    def _gather(self, place: int) -> None:
        group = self._order[place]
        ops = group.gather_again if self._backward else group.gather
        if not ops:
            self._arrival.append([])
            return
        done = self._done[: max(0, place - self._prefetch)] if group.bounded else []
        numbers = self._serial(ops, done[-1:], start={WEIGHTS: group.gathered_nbytes}, early=not done)
        self._chain.takes.append((numbers[0], group.blocks))
        self._chain.room = self._prefetch + 1 if group.bounded else None
        self._arrival.append(numbers[-1:])

    def _serial(
        self,
        ops: Sequence[Op],
        after: Sequence[int],
        *,
        start: Mapping[str, int] | None = None,
        end: Mapping[str, int] | None = None,
        early: bool = False,
    ) -> list[int]:
        """Ops one after the other, kernels on the stream of the op before them, the first on that of the first other.

        Returns
        -------
        list[int]
            the number of each
        """
        stream = next((stream_of(op) for op in ops if not isinstance(op, Compute)), "compute")
        numbers: list[int] = []
        for n, op in enumerate(ops):
            stream = stream if isinstance(op, Compute) else stream_of(op)
            number = self._chain.beside(
                op,
                after=numbers[-1:] or after,
                layer=-1,
                start=start if n == 0 else None,
                end=end if n == len(ops) - 1 else None,
                stream=stream,
                early=early,
            )
            numbers.append(number)
        return numbers
