"""A stage's way through its schedule: units of work, and the messages to and from its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clustersim.workload.layers.placed import Placed
from clustersim.workload.op import Collective
from clustersim.workload.passes.backward import backward
from clustersim.workload.passes.forward import forward
from clustersim.workload.passes.fragment import ACTIVATIONS, COMMUNICATION, Fragment
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.program import Program
from clustersim.workload.schedule import Unit
from clustersim.workload.shard import Shard

__all__ = ["StageChunk", "Trail", "stage_chunk", "write_units"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StageChunk:
    """A chunk as its stage's program uses it.

    Parameters
    ----------
    virtual_stage : int
    placed : tuple[Placed, ...]
    forward, backward : Fragment
    is_first, is_last : bool
        of all virtual stages
    """

    virtual_stage: int
    placed: tuple[Placed, ...]
    forward: Fragment
    backward: Fragment
    is_first: bool
    is_last: bool

    @property
    def parameters(self) -> int:
        """Weights on one rank."""
        return sum(p.block.parameters for p in self.placed)


def stage_chunk(placed: tuple[Placed, ...], shard: Shard, plan: ParallelPlan, *, virtual_stage: int) -> StageChunk:
    """Both passes over the blocks of one virtual stage of a resolved plan."""
    is_first, is_last = virtual_stage == 0, virtual_stage == plan.pp * plan.vpp - 1
    return StageChunk(
        virtual_stage=virtual_stage,
        placed=placed,
        forward=forward(placed, shard, stage=virtual_stage, recompute=plan.recompute, sends=not is_last),
        backward=backward(
            placed,
            shard,
            stage=virtual_stage,
            recompute=plan.recompute,
            overlap=plan.overlap_tp,
            receives=not is_last,
            sends=not is_first,
        ),
        is_first=is_first,
        is_last=is_last,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Trail:
    """Where a stage's units stand in its program.

    Parameters
    ----------
    first_forward, last_backward : Mapping[int, int]
        chunk -> number of the first op of its first forward and of its last backward unit
    exit : int
        last op of the last unit
    """

    first_forward: Mapping[int, int]
    last_backward: Mapping[int, int]
    exit: int


def write_units(program: Program, chunks: Sequence[StageChunk], units: Sequence[Unit], shard: Shard) -> Trail:
    """Append a stage's units in order, with their receives and sends.

    Messages have a stream for each direction and side, so that no send holds up the computation. The receive of the
    unit at position k is posted when unit k - 2 has ended: one buffer ahead. What is received is held from then on;
    what is sent is held until it has left.

    Parameters
    ----------
    program : Program
    chunks : Sequence[StageChunk]
        of this stage
    units : Sequence[Unit]
        its row of the schedule
    shard : Shard
    """
    x = shard.residual_nbytes
    exits: list[int] = []
    first_forward: dict[int, int] = {}
    last_backward: dict[int, int] = {}
    for unit in units:
        chunk = chunks[unit.chunk]
        side = _SIDES[unit.kind]
        fragment = chunk.forward if unit.kind == "F" else chunk.backward
        first, last = (chunk.is_first, chunk.is_last) if unit.kind == "F" else (chunk.is_last, chunk.is_first)
        before = exits[-1:]
        if not first:
            received = program.add(
                side.receive(x),
                stream=f"pp {side.name} receive",
                after=exits[-2:-1],
                start_bytes={side.received_as: x},
                phase=side.name,
                micro_batch=unit.micro_batch,
                stage=chunk.virtual_stage,
            )
            before = [*before, received]
        offset = program.extend(
            fragment.program, after=dict.fromkeys(fragment.entries, before), micro_batch=unit.micro_batch
        )
        exits.append(offset + fragment.exit)
        if not last:
            program.add(
                side.send(x),
                stream=f"pp {side.name} send",
                after=exits[-1:],
                end_bytes={COMMUNICATION: -x},
                phase=side.name,
                micro_batch=unit.micro_batch,
                stage=chunk.virtual_stage,
            )
        if unit.kind == "F":
            first_forward.setdefault(unit.chunk, offset)
        else:
            last_backward[unit.chunk] = offset
    return Trail(first_forward=first_forward, last_backward=last_backward, exit=exits[-1])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Side:
    """Messages of one direction: activations go forward, gradients backward."""

    name: str
    what: str
    received_as: str

    def send(self, nbytes: int) -> Collective:
        return Collective(name=f"send {self.what}", kind="send", slot=f"{self.name}_out", nbytes=nbytes, axis="pp")

    def receive(self, nbytes: int) -> Collective:
        return Collective(name=f"receive {self.what}", kind="recv", slot=f"{self.name}_in", nbytes=nbytes, axis="pp")


_SIDES = {
    "F": _Side(name="forward", what="activations", received_as=ACTIVATIONS),
    "B": _Side(name="backward", what="gradients", received_as=COMMUNICATION),
}
