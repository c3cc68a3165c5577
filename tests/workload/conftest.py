"""Small models, shards of them, and a way to run a job without clocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from clustersim.workload.job import Job
from clustersim.workload.layers.block import Block
from clustersim.workload.layers.piece import fused
from clustersim.workload.model import Model
from clustersim.workload.op import Collective, Compute
from clustersim.workload.program import Program
from clustersim.workload.shard import Shard


@pytest.fixture(scope="session")
def gpt() -> Model:
    """GPT-like: two-matrix MLP of 4·h, all biases, learned positions, tied embeddings."""
    return Model(
        name="gpt-test",
        num_layers=8,
        hidden=256,
        num_heads=8,
        num_kv_heads=8,
        head_dim=32,
        ffn_hidden=1024,
        gated_mlp=False,
        vocab=1024,
        max_seq_len=128,
        norm="layernorm",
        positions="learned",
        tied_embeddings=True,
        qkv_bias=True,
        attention_output_bias=True,
        mlp_bias=True,
        norm_bias=True,
    )


@pytest.fixture(scope="session")
def llama() -> Model:
    """Llama-like: gated MLP, grouped-query attention, rotary positions, a head of its own."""
    return Model(
        name="llama-test",
        num_layers=8,
        hidden=256,
        num_heads=8,
        num_kv_heads=4,
        head_dim=32,
        ffn_hidden=688,
        gated_mlp=True,
        vocab=1000,
        max_seq_len=128,
        norm="rmsnorm",
        positions="rope",
        tied_embeddings=False,
    )


@pytest.fixture(scope="session")
def new_shard() -> Callable[..., Shard]:
    """A shard of a model: two sequences of 128 tokens unless told otherwise."""

    def build(model: Model, **changes: Any) -> Shard:
        return Shard(**{"model": model, "micro_batch": 2, "seq_len": 128, **changes})

    return build


@pytest.fixture(scope="session")
def flops() -> Callable[[Block], tuple[int, int]]:
    """FLOP of a block, forward and backward."""

    def both(block: Block) -> tuple[int, int]:
        forward, backward = (
            [p.op for p in way if isinstance(p.op, Compute)] for way in (block.forward, block.backward)
        )
        return sum(op.flops for op in forward), sum(op.flops for op in backward)

    return both


@pytest.fixture(scope="session")
def computed() -> Callable[[Block], tuple[Compute, Compute | None, Compute | None]]:
    """Forward pass of a block without collectives, backward pass, and what may run beside the reduction after it."""

    def ops(block: Block) -> tuple[Compute, Compute | None, Compute | None]:
        ((forward,), (backward, beside)) = fused(block.forward), block.whole_backward(apart=True)
        (whole,) = backward or (None,)
        assert isinstance(forward.op, Compute)
        assert whole is None or isinstance(whole.op, Compute)
        return forward.op, None if whole is None else whole.op, beside

    return ops


@pytest.fixture(scope="session")
def flops_of() -> Callable[..., int]:
    """FLOP of a program, or of its ops that ``only`` accepts."""

    def total(program: Program, only: Callable[[Compute], bool] = lambda op: True) -> int:
        arrays = program.arrays()
        counts = np.bincount(arrays.op, minlength=len(arrays.ops)).tolist()
        pairs = zip(arrays.ops, counts, strict=True)
        return sum(op.flops * n for op, n in pairs if isinstance(op, Compute) and only(op))

    return total


@pytest.fixture(scope="session")
def sent() -> Callable[..., int]:
    """Payload bytes of a program's collectives: of a kind, on a slot, named."""

    def total(program: Program, kind: str = "", slot: str = "", name: str = "") -> int:
        arrays = program.arrays()
        chosen = [
            op.nbytes
            if isinstance(op, Collective) and kind in ("", op.kind) and slot in ("", op.slot) and name in op.name
            else 0
            for op in arrays.ops
        ]
        return int(np.array(chosen, dtype=np.int64)[arrays.op].sum())

    return total


@dataclass
class Finished:
    """What is left when nothing more can run."""

    order: dict[int, list[int]]
    peak: dict[int, dict[str, int]]
    left: dict[int, dict[str, int]]
    lowest: int
    complete: bool


@pytest.fixture(scope="session")
def run_untimed() -> Callable[[Job], Finished]:
    """Run every rank op by op; a collective ends when the same position of each member's slot has been reached."""
    return _run_untimed


def _run_untimed(job: Job) -> Finished:
    arrays = [job.programs[k].arrays() for k in job.program_of]
    rendezvous: dict[tuple[int, int], tuple[str, int, int]] = {}
    members: dict[tuple[str, int, int], list[tuple[int, int]]] = defaultdict(list)
    for family in job.families:
        for g, ranks in enumerate(family.members.tolist()):
            for position, rank in enumerate(ranks):
                for n, op in enumerate(arrays[rank].slots().get(family.slot(position), [])):
                    rendezvous[rank, int(op)] = (family.name, g, n)
                    members[family.name, g, n].append((rank, int(op)))
    waits = [np.bincount(a.edges[:, 1], minlength=len(a)) for a in arrays]
    successors = [defaultdict(list) for _ in arrays]
    for rank, a in enumerate(arrays):
        for before, after in a.edges.tolist():
            successors[rank][before].append(after)
    ready = [(rank, int(op)) for rank, w in enumerate(waits) for op in np.flatnonzero(w == 0)]
    arrived: dict[tuple[str, int, int], int] = defaultdict(int)
    order: dict[int, list[int]] = {rank: [] for rank in range(len(arrays))}
    while ready:
        rank, op = ready.pop()
        meeting = rendezvous.get((rank, op))
        ends = [(rank, op)]
        if meeting is not None:
            arrived[meeting] += 1
            ends = members[meeting] if arrived[meeting] == len(members[meeting]) else []
        for r, o in ends:
            order[r].append(o)
            for after in successors[r][o]:
                waits[r][after] -= 1
                if waits[r][after] == 0:
                    ready.append((r, after))
    peak, left, lowest = {}, {}, 0
    for rank, a in enumerate(arrays):
        deltas = defaultdict(list)
        for op, _, key, nbytes in a.memory.tolist():
            deltas[op].append((a.memory_keys[key], nbytes))
        held: dict[str, int] = defaultdict(int)
        highest: dict[str, int] = defaultdict(int)
        for op in order[rank]:
            for key, nbytes in deltas[op]:
                held[key] += nbytes
                highest[key] = max(highest[key], held[key])
                lowest = min(lowest, held[key])
        peak[rank], left[rank] = dict(highest), {k: n for k, n in held.items() if n}
    complete = all(len(order[r]) == len(a) for r, a in enumerate(arrays))
    return Finished(order=order, peak=peak, left=left, lowest=lowest, complete=complete)
