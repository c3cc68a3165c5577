"""Messages between stages: posted in time, in one order on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clustersim.workload.arrays import Arrays
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.training_step import training_step

PLANS: list[dict[str, Any]] = [
    {"pp": 4, "schedule": "gpipe"},
    {"pp": 4, "schedule": "1f1b"},
    {"pp": 4, "vpp": 2},
    {"pp": 2, "vpp": 4},
]


def programs(model: Model, **plan: Any) -> list[Arrays]:
    job = training_step(model, ParallelPlan(dp=1, **plan), global_batch=8, micro_batch=1, seq_len=128)
    return [p.arrays() for p in job.programs]


def messages(arrays: Arrays, slot: str, shift: int) -> list[tuple[int, int]]:
    """(micro-batch, virtual stage + shift) of each message on a slot, in order."""
    ops = arrays.slots().get(slot, np.empty(0, np.int32))
    return list(zip(arrays.micro_batch[ops].tolist(), (arrays.stage[ops] + shift).tolist(), strict=True))


@pytest.mark.parametrize("plan", PLANS)
def test_both_sides_agree_on_the_order(llama: Model, plan: dict[str, Any]) -> None:
    stages = programs(llama, **plan)
    for way, shift in (("forward", 1), ("backward", -1)):
        for s, sender in enumerate(stages):
            sent = messages(sender, f"{way}_out", shift)
            received = messages(stages[(s + shift) % len(stages)], f"{way}_in", 0)
            assert sent == received
        boundaries = plan["pp"] * plan.get("vpp", 1) - 1
        assert sum(len(messages(a, f"{way}_out", 0)) for a in stages) == 8 * boundaries


def unit_ends(arrays: Arrays) -> list[int]:
    """Last op of each unit on the compute stream, in order."""
    compute = np.flatnonzero(arrays.stream == arrays.streams.index("compute"))[:-1]
    label = np.stack([arrays.micro_batch[compute], arrays.stage[compute], arrays.phase[compute]])
    return compute[np.append((label[:, 1:] != label[:, :-1]).any(axis=0), True)].tolist()


@pytest.mark.parametrize("plan", PLANS)
def test_a_receive_is_posted_one_unit_ahead(llama: Model, plan: dict[str, Any]) -> None:
    for arrays in programs(llama, **plan):
        ends = unit_ends(arrays)
        edges = {tuple(e) for e in arrays.edges.tolist()}
        for way in ("forward", "backward"):
            for receive in arrays.slots().get(f"{way}_in", []):
                place = next(k for k, end in enumerate(ends) if end > receive)
                waits = {b for b, a in edges if a == receive and b in ends}
                assert waits == ({ends[place - 2]} if place >= 2 else set())
                assert any((receive, first) in edges for first in range(receive + 1, ends[place] + 1))


def test_a_send_waits_for_its_unit_and_holds_nothing_up(llama: Model) -> None:
    arrays = programs(llama, pp=4)[1]
    ends = unit_ends(arrays)
    for way in ("forward", "backward"):
        for send in arrays.slots()[f"{way}_out"]:
            before = arrays.edges[arrays.edges[:, 1] == send, 0]
            assert max(before) in ends
            after = arrays.edges[arrays.edges[:, 0] == send, 1]
            assert {arrays.streams[s] for s in arrays.stream[after]} <= {f"pp {way} send"}


def test_messages_in_parts_are_gathered_before_their_unit(llama: Model) -> None:
    """Each rank of tp sends 1/tp of what all of them have, and a gathering of the whole follows each receive."""
    plan = {"pp": 4, "tp": 2, "sequence_parallel": False}
    for whole, parts in zip(programs(llama, **plan), programs(llama, **plan, scatter_gather=True), strict=True):
        for way in ("forward", "backward"):
            for side in ("in", "out"):
                before, after = (sent(arrays, f"{way}_{side}") for arrays in (whole, parts))
                assert len(after) == len(before)
                assert [2 * nbytes for nbytes in after] == before
        received = [*sent(whole, "forward_in"), *sent(whole, "backward_in")]
        gathered = [
            parts.ops[parts.op[n]].nbytes
            for n in parts.slots()["tp"]
            if parts.ops[parts.op[n]].name in ("all-gather activations", "all-gather gradients")
        ]
        assert sorted(gathered) == sorted(received)


def sent(arrays: Arrays, slot: str) -> list[int]:
    """Bytes of each message on a slot."""
    return [arrays.ops[arrays.op[n]].nbytes for n in arrays.slots().get(slot, [])]
