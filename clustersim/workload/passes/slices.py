"""Passes of linear attention that take a sequence in slices, so that memory is that of one slice.

The forward pass goes through the slices in order and keeps of each layer the state alone. The backward pass goes
through them from the last to the first: it runs the forward pass of a slice again, now keeping what is needed, and then
goes back through the slice, with the gradient of the state carried on to the slice before.

References
----------
Likhosherstov et al., Sub-Linear Memory: How to Make Performers SLiM, 2020 (arXiv 2012.11346).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from clustersim.workload.layers.block import Block, again
from clustersim.workload.layers.linear_attention import state_nbytes
from clustersim.workload.layers.placed import Placed
from clustersim.workload.passes.backward import backward
from clustersim.workload.passes.forward import forward
from clustersim.workload.passes.fragment import Fragment
from clustersim.workload.program import Program
from clustersim.workload.recompute import Recomputation
from clustersim.workload.shard import Shard

__all__ = ["sliced_backward", "sliced_forward"]


def sliced_forward(placed: Sequence[Placed], shard: Shard) -> Fragment:
    """The forward pass of a model for one micro-batch, slice by slice.

    Parameters
    ----------
    placed : Sequence[Placed]
        all blocks, for one slice
    shard : Shard
        of one slice
    """
    passing = [replace(p, block=_passing(p.block, shard)) for p in placed]
    first = _forward(_with_states(passing, shard, 1), shard)
    others = _forward(passing, shard)
    return _in_a_row([first, *[others] * (shard.slices - 1)], marked=first)


def sliced_backward(placed: Sequence[Placed], shard: Shard, *, overlap: bool) -> Fragment:
    """The backward pass of a model for one micro-batch, slice by slice from the last.

    Parameters
    ----------
    placed, shard
        as in :func:`sliced_forward`
    overlap : bool
        weight gradients run beside tensor-parallel reductions
    """
    repeated = [replace(p, block=_repeated(p.block)) for p in placed]
    found = []
    for number in reversed(range(shard.slices)):
        takes = _with_states(repeated, shard, 1) if number == shard.slices - 1 else repeated
        gives = _with_states(placed, shard, 2) if number == 0 else placed
        found.append(_forward(takes, shard))
        found.append(
            backward(
                gives,
                shard,
                stage=0,
                recompute=Recomputation(),
                overlap=overlap,
                receives=False,
                sends=False,
            )
        )
    return _in_a_row(found, marked=found[-1])


def _forward(placed: Sequence[Placed], shard: Shard) -> Fragment:
    return forward(placed, shard, stage=0, recompute=Recomputation(), sends=False)


def _passing(block: Block, shard: Shard) -> Block:
    """A block that keeps nothing, and holds what comes in while it runs."""
    held = block.forward_workspace + block.kept + shard.residual_nbytes
    return replace(block, kept=0, parts=(), produces=False, forward_workspace=held)


def _repeated(block: Block) -> Block:
    """A block whose forward pass is done a second time."""
    return replace(block, forward=tuple(replace(piece, op=again(piece.op)) for piece in block.forward))


def _with_states(placed: Sequence[Placed], shard: Shard, count: int) -> list[Placed]:
    """Layers whose attention takes or gives back its state, and perhaps that state's gradient."""
    held = count * state_nbytes(shard)
    return [
        replace(p, block=replace(p.block, kept=p.block.kept + held)) if p.block.kind == "linear attention" else p
        for p in placed
    ]


def _in_a_row(fragments: Sequence[Fragment], *, marked: Fragment) -> Fragment:
    """Fragments one after the other as one, with the ops of the blocks of ``marked``, where it stands last."""
    program = Program()
    exits: list[int] = []
    op_of_block: tuple[int, ...] = ()
    for fragment in fragments:
        offset = program.extend(fragment.program, after=dict.fromkeys(fragment.entries, exits))
        exits = [offset + n for n in fragment.exits]
        if fragment is marked:
            op_of_block = tuple(n if n < 0 else offset + n for n in fragment.op_of_block)
    return Fragment(program=program, entries=fragments[0].entries, exits=tuple(exits), op_of_block=op_of_block)
