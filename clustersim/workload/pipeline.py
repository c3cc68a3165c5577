"""A stage's way through its schedule: units of work, and the messages to and from the stages around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from clustersim.workload.op import Collective
from clustersim.workload.passes.fragment import ACTIVATIONS, COMMUNICATION, Fragment
from clustersim.workload.passes.parameter_group import GRADIENT_ROOM
from clustersim.workload.program import Program
from clustersim.workload.schedule import Overlapped, Unit, units_of
from clustersim.workload.stage_chunk import StageChunk

__all__ = ["Trail", "message_slot", "write_units"]


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


def message_slot(side: str, hop: int) -> str:
    """Stem of the slots of messages that go ``hop`` stages on: ``forward``, and ``backward`` for the way back.

    Hops of one stage on are the rule and have the plain name; others carry their number, as on the way up a vee.
    """
    return side if hop == 1 else f"{side}{hop:+d}"


def write_units(program: Program, chunks: Sequence[StageChunk], row: Sequence[Unit | Overlapped]) -> Trail:
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
    """
    exits: list[tuple[int, ...]] = []
    first_use: dict[tuple[int, int], int] = {}
    completed: dict[tuple[int, int], int] = {}
    final = _last_backward(row)
    gathers: list[int] = []
    gathered: dict[tuple[int, tuple[int, ...]], int] = {}
    left: dict[tuple[int, int, int], int] = {}
    weights, gradients = _Room(), _Room()
    posted: dict[tuple[str, int, Program], _Posted] = {}
    for entry in row:
        units = (entry,) if isinstance(entry, Unit) else (entry.forward, entry.backward)
        ahead = exits[-2] if len(exits) > 1 else ()
        before = list(exits[-1]) if exits else []
        fragments = []
        for unit in units:
            last = final[unit.kind, unit.chunk] == unit.micro_batch
            fragments.append(chunks[unit.chunk].fragment(unit.kind, micro_batch=unit.micro_batch, last=last))
        if len(units) == 1:
            key = units[0].kind, units[0].chunk, fragments[0].program
            if key not in posted:
                posted[key] = _with_messages(chunks[units[0].chunk], units[0], fragments[0])
            offsets = [posted[key].write(program, units[0].micro_batch, before, ahead)]
        else:
            for unit in units:
                before += _receive(program, chunks[unit.chunk], unit, ahead)
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
            if len(units) > 1:
                _send(program, chunks[unit.chunk], unit, out)
            left |= {(unit.chunk, unit.micro_batch, block): place[n] for block, n in fragment.leaves}
            for block, n in fragment.returns:
                program.depend(place[n], after=[left[unit.chunk, unit.micro_batch, block]])
            for block, n in enumerate(fragment.op_of_block):
                if unit.kind == "F":
                    first_use.setdefault((unit.chunk, block), place[n])
                elif n >= 0:
                    completed[unit.chunk, block] = place[n]
        exits.append(tuple(ends))
    return Trail(first_use=first_use, completed=completed, exits=exits[-1], gathers=tuple(gathers), gathered=gathered)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Posted:
    """A unit's ops with the messages to and from it, written once for all its micro-batches.

    Parameters
    ----------
    program : Program
    fragment : Fragment
    first : int
        its first op in ``program``
    receive : int
        the message that it waits for, -1 where there is none
    """

    program: Program
    fragment: Fragment
    first: int
    receive: int

    def write(self, program: Program, micro_batch: int, before: Iterable[int], ahead: Iterable[int]) -> Sequence[int]:
        """Append a copy behind ``before``, its message posted behind ``ahead``; where the fragment's ops now stand."""
        (place,) = program.weave([self.program], micro_batches=[micro_batch])
        if self.receive >= 0:
            program.depend(place[self.receive], after=ahead)
        for number in self.fragment.entries:
            program.depend(place[self.first + number], after=before)
        for number in self.fragment.early:
            program.depend(place[self.first + number], after=ahead)
        return place[self.first : self.first + len(self.fragment.program)]


def _with_messages(chunk: StageChunk, unit: Unit, fragment: Fragment) -> _Posted:
    program = Program()
    came = _receive(program, chunk, unit, ())
    first = program.extend(fragment.program)
    for number in fragment.entries:
        program.depend(first + number, after=came)
    _send(program, chunk, unit, [first + number for number in fragment.exits])
    return _Posted(program=program, fragment=fragment, first=first, receive=0 if came else -1)


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


def _receive(program: Program, chunk: StageChunk, unit: Unit, ahead: Sequence[int]) -> list[int]:
    """Post the receive that a unit waits for, and the gathering of what came in parts.

    Empty when its input is made on this stage.
    """
    side = _SIDES.get(unit.kind)
    hop = None if side is None else chunk.hop_in if unit.kind == "F" else chunk.hop_out
    if side is None or not hop:
        return []
    slot = f"{message_slot(side.name, hop)}_in"
    part, stream = _part(chunk), f"pp {message_slot(side.name, hop)} receive"
    add = partial(program.add, phase=side.name, micro_batch=unit.micro_batch, stage=chunk.virtual_stage)
    op = Collective(name=f"receive {side.what}", kind="recv", slot=slot, nbytes=part, axis="pp")
    if chunk.message_parts == 1:
        return [add(op, stream=stream, after=ahead, start_bytes={side.received_as: part})]
    came = add(op, stream=stream, after=ahead, start_bytes={COMMUNICATION: part})
    whole = chunk.message_nbytes
    gather = Collective(name=f"all-gather {side.what}", kind="all_gather", slot="tp", nbytes=whole, axis="tp")
    held = {side.received_as: whole}
    return [add(gather, stream="tp", after=[came], start_bytes=held, end_bytes={COMMUNICATION: -part})]


def _send(program: Program, chunk: StageChunk, unit: Unit, out: Sequence[int]) -> None:
    """Send what a unit made to the stage that it belongs to, if that is another one."""
    side = _SIDES.get(unit.kind)
    hop = None if side is None else chunk.hop_out if unit.kind == "F" else chunk.hop_in
    if side is None or not hop:
        return
    slot = f"{message_slot(side.name, hop)}_out"
    program.add(
        Collective(name=f"send {side.what}", kind="send", slot=slot, nbytes=_part(chunk), axis="pp"),
        stream=f"pp {message_slot(side.name, hop)} send",
        after=out,
        end_bytes={COMMUNICATION: -chunk.message_nbytes},
        phase=side.name,
        micro_batch=unit.micro_batch,
        stage=chunk.virtual_stage,
    )


def _part(chunk: StageChunk) -> int:
    """What one rank sends or receives of a message [B]."""
    return -(-chunk.message_nbytes // chunk.message_parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """Messages of one direction: activations go forward, gradients backward."""

    name: str
    what: str
    received_as: str


_BACK = _Side(name="backward", what="gradients", received_as=COMMUNICATION)
_SIDES = {
    "F": _Side(name="forward", what="activations", received_as=ACTIVATIONS),
    "B": _BACK,
    "I": _BACK,
}
