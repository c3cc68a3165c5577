"""Messages between stages: what a unit receives from one and sends to another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from clustersim.workload.op import Collective
from clustersim.workload.passes.fragment import ACTIVATIONS, COMMUNICATION, Fragment
from clustersim.workload.program import Program
from clustersim.workload.schedule import Unit
from clustersim.workload.stage_chunk import StageChunk

__all__ = ["PostedUnit", "message_slot", "receive", "send", "with_messages"]


def message_slot(side: str, hop: int) -> str:
    """Stem of the slots of messages that go ``hop`` stages on: ``forward``, and ``backward`` for the way back.

    Hops of one stage on are the rule and have the plain name; others carry their number, as on the way up a vee.
    """
    return side if hop == 1 else f"{side}{hop:+d}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PostedUnit:
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


def with_messages(chunk: StageChunk, unit: Unit, fragment: Fragment) -> PostedUnit:
    """A unit of a chunk whose ops stand in ``fragment``, with its messages."""
    program = Program()
    came = receive(program, chunk, unit, ())
    first = program.extend(fragment.program)
    for number in fragment.entries:
        program.depend(first + number, after=came)
    send(program, chunk, unit, [first + number for number in fragment.exits])
    return PostedUnit(program=program, fragment=fragment, first=first, receive=0 if came else -1)


def receive(program: Program, chunk: StageChunk, unit: Unit, ahead: Sequence[int]) -> list[int]:
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


def send(program: Program, chunk: StageChunk, unit: Unit, out: Sequence[int]) -> None:
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
