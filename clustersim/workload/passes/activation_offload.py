"""Activations on the host between the passes: they leave behind a layer's forward pass and come back in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from clustersim.workload.layers.placed import Placed
from clustersim.workload.op import Copy
from clustersim.workload.passes.chain import Chain
from clustersim.workload.passes.fragment import ACTIVATIONS
from clustersim.workload.recompute import Recomputation

__all__ = ["HOST_ACTIVATIONS", "Leaving", "OffloadedActivations", "Returning", "offloaded_layers"]

HOST_ACTIVATIONS = "host_pinned/activations"

_AHEAD = 2
"""Layers whose activations are on the GPU at a time: of one that runs and of one that is on its way."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OffloadedActivations:
    """Of one layer, or of a group of layers that are computed again together.

    Parameters
    ----------
    blocks : tuple[int, ...]
        of the chunk, in forward order
    nbytes : int
        what its backward pass reads: its input and what its blocks keep [B]
    """

    blocks: tuple[int, ...]
    nbytes: int


def offloaded_layers(placed: Sequence[Placed], recompute: Recomputation) -> tuple[OffloadedActivations, ...]:
    """What of a chunk leaves the GPU, in forward order.

    The last layer stays, because its backward pass is next where there is one stage; so does the input of a layer that
    the chunk begins with, which is a message's.

    Parameters
    ----------
    placed : Sequence[Placed]
        blocks of the chunk in forward order
    recompute : Recomputation
        what is computed again is not kept
    """
    first_layer = min((p.layer for p in placed if p.layer >= 0), default=0)

    def together(i: int) -> tuple[bool, int]:
        group = recompute.group(placed[i].layer, first_layer=first_layer)
        return group >= 0, group if group >= 0 else placed[i].layer

    found = []
    for (repeated, layer), members in groupby(range(len(placed)), key=together):
        blocks = tuple(members)
        if layer < 0:
            continue
        before = placed[blocks[0] - 1] if blocks[0] else None
        nbytes = before.residual_nbytes if before is not None and before.block.produces else 0
        if not repeated:
            nbytes += sum(placed[i].block.held(recompute) for i in blocks)
            nbytes += sum(placed[i].residual_nbytes for i in blocks[:-1] if placed[i].block.produces)
        found.append(OffloadedActivations(blocks=blocks, nbytes=nbytes))
    return tuple(one for one in found[:-1] if one.nbytes and any(placed[i].block.backward for i in one.blocks))


class Leaving:
    """Writes the copies of a forward pass; a layer begins when what the second one before it kept has left.

    Parameters
    ----------
    chain : Chain
    layers : Sequence[OffloadedActivations]
        of the chunk
    """

    def __init__(self, chain: Chain, layers: Sequence[OffloadedActivations]) -> None:
        self._chain = chain
        self._first = {layer.blocks[0]: n for n, layer in enumerate(layers)}
        self._last = {layer.blocks[-1]: layer for layer in layers}
        self._left: list[int] = []

    def before(self, block: int) -> None:
        """Wait for room."""
        place = self._first.get(block, 0)
        if place >= _AHEAD:
            self._chain.last = [*self._chain.last, self._left[place - _AHEAD]]

    def after(self, block: int) -> None:
        """Send away what the layer that ends with the block has kept."""
        kept = self._last.get(block)
        if kept is None:
            return
        op = Copy(name="offload activations", kind="d2h", nbytes=kept.nbytes)
        held, freed = {HOST_ACTIVATIONS: kept.nbytes}, {ACTIVATIONS: -kept.nbytes}
        number = self._chain.beside(op, after=self._chain.last, layer=-1, start=held, end=freed)
        self._left.append(number)
        self._chain.leaves.append((kept.blocks[0], number))


class Returning:
    """Writes the copies of a backward pass, each beside the backward pass of the blocks behind its layer.

    Parameters
    ----------
    chain : Chain
    layers : Sequence[OffloadedActivations]
        of the chunk
    order : Sequence[int]
        blocks in the order of the pass
    """

    def __init__(self, chain: Chain, layers: Sequence[OffloadedActivations], order: Sequence[int]) -> None:
        self._chain = chain
        self._behind = {min(i for i in order if i > layer.blocks[-1]): layer for layer in layers}
        self._of = {block: layer for layer in layers for block in layer.blocks}
        self._came: dict[int, int] = {}

    def before(self, blocks: Sequence[int]) -> None:
        """Before some blocks of one layer: ask for what comes next, wait for what they need."""
        for wanted in (self._behind[i] for i in blocks if i in self._behind):
            op = Copy(name="bring activations", kind="h2d", nbytes=wanted.nbytes)
            held, freed = {ACTIVATIONS: wanted.nbytes}, {HOST_ACTIVATIONS: -wanted.nbytes}
            number = self._chain.beside(op, after=self._chain.last, layer=-1, start=held, end=freed)
            self._came[wanted.blocks[0]] = number
            self._chain.returns.append((wanted.blocks[0], number))
        needed = self._of.get(blocks[0])
        if needed is not None:
            self._chain.last = [*self._chain.last, self._came[needed.blocks[0]]]
