"""A stage's way through its schedule, unit by unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clustersim.workload.passes.fragment import Fragment
from clustersim.workload.passes.parameter_group import GRADIENT_ROOM
from clustersim.workload.program import Program
from clustersim.workload.schedule import Overlapped, Unit, units_of
from clustersim.workload.stage_chunk import StageChunk
from clustersim.workload.stage_messages import PostedUnit, receive, send, with_messages

__all__ = ["Trail", "write_units"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trail:
    """Where a stage's units stand in its program.

    Parameters
    ----------
    first_use : Mapping[tuple[int, int], int]
        (chunk, block) -> the op of its first forward that its weights must be there for
    completed : Mapping[tuple[int, int], int]
        (chunk, block) -> the op of its last backward that completes its gradients
    exits : tuple[int, ...]
        last ops of the last unit
    gathers : tuple[int, ...]
        first gatherings of weights, which wait for nothing before them
    gathered : Mapping[tuple[int, tuple[int, ...]], int]
        (chunk, blocks) -> the op of their first forward that gathers their weights
    """

    first_use: Mapping[tuple[int, int], int]
    completed: Mapping[tuple[int, int], int]
    exits: tuple[int, ...]
    gathers: tuple[int, ...] = ()
    gathered: Mapping[tuple[int, tuple[int, ...]], int] = field(default_factory=dict)


def write_units(
    program: Program,
    chunks: Sequence[StageChunk],
    row: Sequence[Unit | Overlapped],
    posts: Mapping[int, Sequence[Unit]] | None = None,
) -> Trail:
    """Append a stage's units in order, with their receives and sends.

    Messages have a stream for each slot, so that no send holds up the computation. The receive of the unit at position
    k is posted when unit k - 2 has ended: one buffer ahead. What is received is held from then on; what is sent is held
    until it has left. Two overlapped units are one position: both wait for the inputs of both, and alternate, so that
    what one waits for passes beside the kernels of the other.
    Weights are gathered ahead across units, as far as there is room for them.

    Parameters
    ----------
    program : Program
    chunks : Sequence[StageChunk]
        of this stage
    row : Sequence[Unit | Overlapped]
        its row of the schedule
    posts : Mapping[int, Sequence[Unit]], optional
        units whose messages are received behind each position, as
        :func:`~clustersim.workload.schedule.time_steps.posts` says; the unit after it waits for them, and for what was
        sent. None: messages hold up nobody but the unit that reads them
    """
    exits: list[tuple[int, ...]] = []
    first_use: dict[tuple[int, int], int] = {}
    completed: dict[tuple[int, int], int] = {}
    final = _last_backward(row)
    gathers: list[int] = []
    gathered: dict[tuple[int, tuple[int, ...]], int] = {}
    left: dict[tuple[int, int, int], int] = {}
    weights, gradients = _Room(), _Room()
    posted: dict[tuple[str, int, Program], PostedUnit] = {}
    came: dict[Unit, list[int]] = {}
    waits: list[int] = []
    for unit in posts.get(-1, ()) if posts else ():
        came[unit] = receive(program, chunks[unit.chunk], unit, ())
    for position, entry in enumerate(row):
        units = (entry,) if isinstance(entry, Unit) else (entry.forward, entry.backward)
        ahead = exits[-2] if len(exits) > 1 else ()
        before = list(exits[-1]) if exits else []
        fragments = []
        for unit in units:
            last = final[unit.kind, unit.chunk] == unit.micro_batch
            fragments.append(chunks[unit.chunk].fragment(unit.kind, micro_batch=unit.micro_batch, last=last))
        if posts is not None:
            before += waits
            for unit in units:
                before += came.pop(unit, ())
            offsets = _extend(program, fragments, units, before, ahead)
        elif len(units) == 1:
            key = units[0].kind, units[0].chunk, fragments[0].program
            if key not in posted:
                posted[key] = with_messages(chunks[units[0].chunk], units[0], fragments[0])
            offsets = [posted[key].write(program, units[0].micro_batch, before, ahead)]
        else:
            for unit in units:
                before += receive(program, chunks[unit.chunk], unit, ahead)
            offsets = _extend(program, fragments, units, before, ahead)
        for fragment, place in zip(fragments, offsets, strict=True):
            gathers += weights.hold(program, [place[n] for n, _ in fragment.takes], fragment.room)
            gradients.hold(program, [place[n] for n in fragment.fills], GRADIENT_ROOM)
        for fragment, place in zip(fragments, offsets, strict=True):
            weights.gives += [place[n] for n in fragment.gives]
            gradients.gives += [place[n] for n in fragment.drains]
        ends: list[int] = []
        for unit, fragment, place in zip(units, fragments, offsets, strict=True):
            out = [place[n] for n in fragment.exits]
            ends += out
            if unit.kind == "F":
                for n, blocks in fragment.takes:
                    gathered.setdefault((unit.chunk, blocks), place[n])
            if len(units) > 1 or posts is not None:
                sent = len(program)
                send(program, chunks[unit.chunk], unit, out)
                waits = list(range(sent, len(program)))
            left |= {(unit.chunk, unit.micro_batch, block): place[n] for block, n in fragment.leaves}
            for block, n in fragment.returns:
                program.depend(place[n], after=[left[unit.chunk, unit.micro_batch, block]])
            for block, n in enumerate(fragment.op_of_block):
                if unit.kind == "F":
                    first_use.setdefault((unit.chunk, block), place[n])
                elif n >= 0:
                    completed[unit.chunk, block] = place[n]
        for unit in posts.get(position, ()) if posts else ():
            came[unit] = receive(program, chunks[unit.chunk], unit, ends)
            waits += came[unit]
        exits.append(tuple(ends))
    return Trail(first_use=first_use, completed=completed, exits=exits[-1], gathers=tuple(gathers), gathered=gathered)


class _Room:
    """Room for a number of things, across units; inside of a unit its fragment sees to it.

    Attributes
    ----------
    takes : int
        ops that took some so far
    gives : list[int]
        ops whose end gives it back, in order
    """

    def __init__(self) -> None:
        self.takes = 0
        self.gives: list[int] = []

    def hold(self, program: Program, ops: Sequence[int], room: int | None) -> list[int]:
        """Let ops that take room wait for it; those that need not."""
        free = []
        for op in ops:
            wanted = -1 if room is None else self.takes - room
            if wanted < 0:
                free.append(op)
            else:
                program.depend(op, after=self.gives[wanted : wanted + 1])
            self.takes += 1
        return free


def _last_backward(row: Sequence[Unit | Overlapped]) -> dict[tuple[str, int], int]:
    """(kind, chunk) -> the micro-batch of its last unit."""
    return {(unit.kind, unit.chunk): unit.micro_batch for unit in units_of(row)}


def _extend(
    program: Program,
    fragments: Sequence[Fragment],
    units: Sequence[Unit],
    before: Sequence[int],
    ahead: Sequence[int],
) -> list[Sequence[int]]:
    """Append one fragment, or two with their ops alternating; where each op of each now stands."""
    places = program.weave([f.program for f in fragments], micro_batches=[unit.micro_batch for unit in units])
    for fragment, place in zip(fragments, places, strict=True):
        for number in fragment.entries:
            program.depend(place[number], after=before)
        for number in fragment.early:
            program.depend(place[number], after=ahead)
    return places
