"""Saves in a program: what leaves the GPU, what is written, and what of the next step waits for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from clustersim.workload.checkpoint.policy import PHASE, Background, Checkpoint
from clustersim.workload.checkpoint.state import State
from clustersim.workload.job import Pool
from clustersim.workload.offload.place import Tier
from clustersim.workload.offload.traffic import read, write
from clustersim.workload.op import Copy, HostWork, Op, Storage
from clustersim.workload.program import Program

__all__ = ["Turn", "buffer", "usual_rounds", "write_saves"]

_BUFFER = "checkpoint buffer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """Where one step of a program could be saved, or held up by a save.

    Parameters
    ----------
    updated : int
        the op after which the state is that of the step
    begins, changes : Sequence[int]
        first ops of its passes, and of its update
    """

    updated: int
    begins: Sequence[int]
    changes: Sequence[int]


def write_saves(program: Program, policy: Checkpoint, turns: Sequence[Turn], states: Sequence[State]) -> None:
    """Append the saves of a whole program, its calls of the host included, in place.

    Threads of their own copy and write, on streams ``checkpoint …``. The thread that issues kernels waits where the
    GPU does. Ranks do not wait for each other: a version is there when the last of them has written its files.

    Parameters
    ----------
    program : Program
    policy : Checkpoint
    turns : Sequence[Turn]
        of its steps
    states : Sequence[State]
        of the rank after each of them
    """
    calls = _calls(program, len(turns))
    for number, (turn, state) in enumerate(zip(turns, states, strict=True)):
        if (number + 1) % policy.every:
            continue
        save = _Save(program=program, policy=policy, turn=turn, step=number)
        ends = save.behind(state) if isinstance(policy, Background) else save.in_turn(state)
        following = (number + 1) % len(turns)
        beside = isinstance(policy, Background) and policy.waits == "update"
        held = turns[following].changes if beside else turns[following].begins
        for op in {*held, *calls[following]["optimizer" if beside else ""]}:
            for end in ends:
                if following:
                    program.depend(op, after=[end])
                else:
                    program.carry(end, op)
    place = policy.tier if policy.tier != "host" else f"host_{_pinned(policy)}"
    program.resident[f"{place}/checkpoints"] = policy.keeps * max(sum(state.values()) for state in states)


def buffer(policy: Checkpoint | None, programs: Sequence[Program]) -> dict[str, Pool]:
    """The pool of a job's saves, by its name.

    Parameters
    ----------
    policy : Checkpoint, optional
    programs : Sequence[Program]
        of the job
    """
    if not isinstance(policy, Background) or policy.tier == "host":
        return {}
    capacity = policy.pool_bytes or max(_taken(program, policy) for program in programs)
    return {_BUFFER: Pool(capacity=capacity, memory=f"host_{_pinned(policy)}/{_BUFFER}", unit_bytes=1)}


def usual_rounds(policy: Checkpoint, programs: Sequence[Program]) -> int:
    """Steps of a run with a save after each, of which most are like all later ones.

    The buffer holds some saves, one or two wait for less than they always will. Where writes nearly keep up it fills
    more slowly than that.

    Parameters
    ----------
    policy : Checkpoint
    programs : Sequence[Program]
        of the job; none: of a buffer that holds one save
    """
    if not programs:
        return 8 if isinstance(policy, Background) and policy.tier != "host" else 3
    pools = buffer(policy, programs)
    part = min((_taken(program, policy) for program in programs), default=0) if pools else 0
    return 6 + 2 * -(-pools[_BUFFER].capacity // part) if part else 3


def _taken(program: Program, policy: Checkpoint) -> int:
    """What one save takes of the buffer [B]."""
    arrays = program.arrays()
    mine = (arrays.pool_use[:, 1] == 0) & (arrays.pool_use[:, 2] == arrays.pools.index(_BUFFER))
    return int(arrays.pool_use[mine, 3].sum()) * policy.every // arrays.period


def _pinned(policy: Checkpoint) -> str:
    return "pinned" if policy.pinned else "pageable"


def _calls(program: Program, num_steps: int) -> list[dict[str, list[int]]]:
    """Of each step the first calls of the host that issues kernels: of all, and of the update."""
    arrays = program.arrays()
    if "host" not in arrays.streams:
        return [{"": [], "optimizer": []} for _ in range(num_steps)]
    issued = np.flatnonzero(arrays.stream == arrays.streams.index("host"))
    found = []
    for step in range(num_steps):
        mine = issued[arrays.step[issued] == step]
        update = [k for k in mine.tolist() if arrays.phases[arrays.phase[k]] == "optimizer"]
        found.append({"": mine[:1].tolist(), "optimizer": update[:1]})
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Save:
    """Writes one save."""

    program: Program
    policy: Checkpoint
    turn: Turn
    step: int

    def in_turn(self, state: State) -> list[int]:
        """Everything in one thread; the op that ends it."""
        last = [self.turn.updated]
        for number, (what, tier, nbytes) in enumerate(self._chunks(state)):
            ops: list[Op] = []
            if tier != "host" or self.policy.tier == "host":
                ops.append(self._fetch(what, tier, nbytes))
            held = {f"host_{_pinned(self.policy)}/{_BUFFER}": nbytes} if ops and self.policy.tier != "host" else {}
            if self.policy.serialises and self.policy.tier != "host":
                ops.append(_serialise(nbytes))
            ops += self._write(nbytes, opens=number < self.policy.files)
            for n, op in enumerate(ops):
                left = {key: -held[key] for key in held} if n == len(ops) - 1 else None
                last = [self._add(op, "checkpoint", last, start_bytes=None if n else held, end_bytes=left)]
        for op in self._metadata():
            last = [self._add(op, "checkpoint", last)]
        return last

    def behind(self, state: State) -> list[int]:
        """Copies through the buffer and writes behind them; the last copy."""
        copied: list[int] = []
        for number, (what, tier, nbytes) in enumerate(self._chunks(state)):
            held = {} if self.policy.tier == "host" else {_BUFFER: nbytes}
            fetch = self._fetch(what, tier, nbytes)
            copied = [self._add(fetch, "checkpoint copy", [self.turn.updated], takes=held)]
            ready = copied
            if self.policy.serialises:
                ready = [self._add(_serialise(nbytes), "checkpoint serialise", ready)]
            stream = f"checkpoint write {number % self.policy.files}"
            for op in self._write(nbytes, opens=number < self.policy.files):
                self._add(op, stream, ready, gives=held)
        before = [self.turn.updated]
        for pickled, stream in zip(self._metadata(), ("checkpoint metadata", "checkpoint write 0"), strict=False):
            before = [self._add(pickled, stream, before)]
        return copied

    def _chunks(self, state: State) -> Iterator[tuple[str, Tier, int]]:
        """(what, where it is, bytes) of each piece; every file has at least one."""
        largest = min(self.policy.chunk_bytes, -(-sum(state.values()) // self.policy.files))
        if isinstance(self.policy, Background) and self.policy.pool_bytes is not None:
            largest = min(largest, self.policy.pool_bytes)
        for (what, tier), nbytes in state.items():
            for begin in range(0, nbytes, largest):
                yield what, tier, min(largest, nbytes - begin)

    def _fetch(self, what: str, tier: Tier, nbytes: int) -> Op:
        """Bring a piece to the host, or to another place there."""
        match tier:
            case "gpu":
                return Copy(name=f"save {what}", kind="d2h", nbytes=nbytes, pageable=not self.policy.pinned)
            case "host":
                return HostWork(name=f"save {what}", kind="copy", nbytes=2 * nbytes, threads=1)
            case _:
                return read(tier, f"save {what}", nbytes)

    def _write(self, nbytes: int, *, opens: bool) -> list[Storage]:
        if self.policy.tier == "host":
            return []
        op = write(self.policy.tier, "write checkpoint", nbytes)
        return [op if opens else Storage(name=op.name, kind=op.kind, nbytes=nbytes, files=0)]

    def _metadata(self) -> list[Op]:
        if not self.policy.metadata_bytes:
            return []
        nbytes = self.policy.metadata_bytes
        return [_serialise(nbytes), *self._write(nbytes, opens=False)]

    def _add(
        self,
        op: Op,
        stream: str,
        after: Sequence[int],
        *,
        takes: dict[str, int] | None = None,
        gives: dict[str, int] | None = None,
        start_bytes: dict[str, int] | None = None,
        end_bytes: dict[str, int] | None = None,
    ) -> int:
        return self.program.add(
            op,
            stream=stream,
            after=after,
            takes=takes,
            gives=gives,
            start_bytes=start_bytes,
            end_bytes=end_bytes,
            phase=PHASE,
            step=self.step,
        )


def _serialise(nbytes: int) -> HostWork:
    """One thread reads and writes every byte."""
    return HostWork(name="serialise", kind="serialise", nbytes=2 * nbytes, threads=1)
