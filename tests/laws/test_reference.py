"""The engine against a simulator of sixty lines that knows none of its tricks.

At every instant it computes the rates of everything in progress from nothing: no components, no fast path, no resource
left out, no folding, no events. It shares with the engine the system's tables and the fixed-point conventions only.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clustersim.engine.perturb import Perturbation, perturbed
from clustersim.engine.scene.signature import ONE, WEIGHT_SHIFT, weight
from clustersim.engine.simulate import simulate
from clustersim.engine.system.build import build
from clustersim.engine.system.group_block import GroupBlock
from clustersim.engine.system.system import System
from clustersim.hardware.roofline import roofline
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.training_step import training_step

Store = tuple[int, str, int]
"""(job, pool, number of the store)"""


class Rank:
    """Ops of all rounds with what each waits for."""

    def __init__(self, system: System, job: int, rank: int, rounds: int) -> None:
        self.job, self.rank = job, rank
        self.program, self.kind = int(system.program_of[rank]), int(system.kind_of[rank])
        arrays = system.programs[self.program]
        n = len(arrays)
        self.op = arrays.op.tolist() * rounds
        self.open = list(range(len(self.op)))
        self.before: list[set[int]] = [set() for _ in self.op]
        for step in range(rounds):
            for a, b in arrays.edges.tolist():
                self.before[step * n + b].add(step * n + a)
            for a, b in arrays.carries.tolist() if step else []:
                self.before[step * n + b].add((step - 1) * n + a)
            for stream in range(len(arrays.streams)) if step else []:
                ops = np.flatnonzero(arrays.stream == stream)
                self.before[step * n + int(ops[0])].add((step - 1) * n + int(ops[-1]))
        self.takes: list[dict[Store, int]] = [{} for _ in self.op]
        self.gives: list[dict[Store, int]] = [{} for _ in self.op]
        for op, at, pool, amount in arrays.pool_use.tolist():
            name = arrays.pools[pool]
            store = job, name, int(system.stores[job, name][0][rank - system.first_rank[job]])
            for step in range(rounds):
                (self.gives if at else self.takes)[step * n + op][store] = amount
        self.meeting: dict[int, tuple[int, int]] = {}  # op -> (group, position in its order)
        for slot, positions in arrays.slots().items():
            group = next(
                block.first + g
                for block in system.blocks
                for g, members in enumerate(block.members.tolist())
                if (rank, slot) in zip(members, block.slots, strict=True)
            )
            numbers = [step * n + op for step in range(rounds) for op in positions.tolist()]
            self.meeting |= {op: (group, k) for k, op in enumerate(numbers)}
        self.start: dict[int, int] = {}
        self.end: dict[int, int] = {}


def reference(system: System, rounds: int) -> list[tuple[list[int], list[int]]]:
    """(start, end) of every op of every rank [ns]."""
    ranks = [
        Rank(system, j, r, rounds)
        for j in range(len(system.jobs))
        for r in range(int(system.first_rank[j]), int(system.first_rank[j + 1]))
    ]
    free = {
        (j, pool, store): system.jobs[j].pools[pool].capacity
        for (j, pool), (of, _) in system.stores.items()
        for store in of.tolist()
    }
    arrived: dict[tuple[int, int], list[tuple[Rank, int]]] = {}
    waiting: list[tuple[int, int, int]] = []  # for pools: (since, rank, op)
    running: list[Running] = []
    now = 0
    while True:
        for a in [a for a in running if a.due() <= now]:
            running.remove(a)
            if a.phases:
                a.turn(now)
                running.append(a)
                continue
            for rank, op in a.members:
                rank.end[op] = now
                for store, amount in rank.gives[op].items():
                    free[store] += amount
        ready = [(rank, op) for rank in ranks for op in rank.open if rank.before[op] <= rank.end.keys()]
        for rank, op in ready:
            rank.open.remove(op)
        waiting += [(now, rank.rank, op) for rank, op in ready if rank.takes[op]]
        starting = [(rank, op) for rank, op in ready if not rank.takes[op]]
        if not starting and not any(a.due() <= now for a in running):
            starting = granted(waiting, ranks, free)
        for rank, op in starting:
            together = [(rank, op)]
            if op in rank.meeting:
                together = arrived.setdefault(rank.meeting[op], [])
                together.append((rank, op))
                if len(together) < block_of(system, rank.meeting[op][0]).members.shape[1]:
                    continue
            running.append(Running(system, together, now))
            for member, k in together:
                member.start[k] = now
        if starting or any(a.due() <= now for a in running):
            continue
        share(running, system, now)
        if not running:
            break
        now = min(a.due() for a in running)
    assert all(len(rank.end) == len(rank.op) for rank in ranks)
    return [([r.start[op] for op in range(len(r.op))], [r.end[op] for op in range(len(r.op))]) for r in ranks]


def block_of(system: System, group: int) -> GroupBlock:
    return next(b for b in system.blocks if b.first <= group < b.first + len(b.members))


def granted(waiting: list[tuple[int, int, int]], ranks: list[Rank], free: dict[Store, int]) -> list[tuple[Rank, int]]:
    """First come, first served in every store; nobody overtakes."""
    closed: set[Store] = set()
    granted = []
    for request in sorted(waiting):
        rank, op = ranks[request[1]], request[2]
        needs = rank.takes[op]
        if any(store in closed or free[store] < amount for store, amount in needs.items()):
            closed |= needs.keys()
            continue
        for store, amount in needs.items():
            free[store] -= amount
        waiting.remove(request)
        granted.append((rank, op))
    return granted


class Running:
    """An op, or a collective of several ranks, in progress; ``phases`` are those to come."""

    def __init__(self, system: System, members: list[tuple[Rank, int]], now: int) -> None:
        self.members, self.num_sms, self.sm_ns = members, 0, 0
        rank, op = members[0]
        if op in rank.meeting:
            group, k = rank.meeting[op]
            block = block_of(system, group)
            s, at = int(block.script[k % len(block.script)]), group - block.first
            self.num_flows, self.num_sms = block.traffic[s].num_flows, block.traffic[s].num_sms
            edges_of, cost_of = np.flatnonzero(block.cost.group == at).tolist(), block.cost.by_phase
            self.phases = [
                (
                    int(cost_of.ns[at, c]),
                    max(1, int(cost_of.peak_load[at, c])),
                    {int(block.cost.row[e]): int(cost_of.load[e, c]) for e in edges_of if cost_of.load[e, c]},
                )
                for c in range(int(cost_of.phases.first[s]), int(cost_of.phases.first[s + 1]))
            ]
        else:
            cost = system.local[rank.program, rank.kind][rank.op[op]]
            assert cost is not None
            self.sm_ns, self.num_flows = cost.sm_ns, 1
            loads: dict[int, int] = {}
            for edges in system.path_edges:
                for row in edges.rows[edges.ranks == rank.rank].tolist() if edges.program == rank.program else []:
                    loads[row] = loads.get(row, 0) + int(edges.loads[rank.op[op]])
            own = {row: load for row, load in loads.items() if load}
            self.phases = [(cost.ns, system.peak_load(rank.program, rank.op[op]), own)]
        self.turn(now)

    def turn(self, now: int) -> None:
        self.ns, self.peak, self.loads = self.phases.pop(0)
        self.left, self.since, self.rate, self.cap = ONE, now, 0, 0

    def due(self) -> int:
        if not self.ns:
            return self.since
        return self.since - (-self.left // self.rate) if self.rate else 1 << 62


def share(running: list[Running], system: System, now: int) -> None:
    """Rates by progressive filling over everything in progress."""
    taken: dict[int, int] = {}
    for a in running:
        for member, _ in a.members:
            taken[member.rank] = taken.get(member.rank, 0) + a.num_sms
    exact = {row: -(-int(c) * ONE // 10**9) for row, c in enumerate(system.topology.resources.capacity)}
    room = {row: c + (c >> 40) for row, c in exact.items()}
    rest, rates = set(running), {}
    for a in running:
        rank = a.members[0][0].rank
        total = system.num_sms(rank)
        free = max(1, total - taken[rank]) if taken[rank] else total
        a.cap = -(-ONE * free // ((a.ns - a.sm_ns) * free + a.sm_ns * total)) if a.ns else 0
    while rest:
        weights: dict[int, int] = {}
        for a in rest:
            for row, load in a.loads.items():
                weights[row] = weights.get(row, 0) + weight(load, a.num_flows, a.peak)
        levels = {row: (room[row] << WEIGHT_SHIFT) // w for row, w in weights.items()}
        level = min(levels.values(), default=0)
        frozen = {a: a.cap for a in rest if not a.loads or -(-a.cap * a.peak // a.num_flows) <= level}
        full = {row for row, of in levels.items() if of == level} if not frozen else set()
        frozen |= {a: max(1, level * a.num_flows // a.peak) for a in rest if full & a.loads.keys()}
        for a, rate in frozen.items():
            rates[a] = rate
            for row, load in a.loads.items():
                room[row] -= load * rate
        rest -= frozen.keys()
    for a, rate in rates.items():
        a.left -= a.rate * (now - a.since) if a.ns else 0
        a.rate, a.since = rate, now


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_full_run_is_the_reference(data: st.DataObject, cases: Any, times_of: Callable[..., Any]) -> None:
    case = data.draw(cases(8))
    topology = perturbed(case.topology, Perturbation.parse(case.perturb))
    slow = [case.perturb["slow_ranks"], {}][: len(case.jobs)]
    expected = reference(build(topology, case.jobs, roofline, slow), case.rounds)
    run = case.run(fold=False)
    got = [times_of(run, j, r) for j, job in enumerate(case.jobs) for r in range(job.num_ranks)]
    assert got == expected


@pytest.mark.parametrize(
    "plan", [{"tp": 2, "pp": 2, "dp": 2, "vpp": 2, "zero": 1}, {"pp": 4, "dp": 2, "schedule": "gpipe"}]
)
def test_a_training_step_is_the_reference(star: ModuleType, times_of: Callable[..., Any], plan: dict[str, Any]) -> None:
    """Two steps on two nodes under an over-subscribed spine."""
    model = Model(
        name="tiny",
        num_layers=4,
        hidden=128,
        num_heads=4,
        num_kv_heads=4,
        head_dim=32,
        ffn_hidden=512,
        gated_mlp=False,
        vocab=1024,
        max_seq_len=128,
        norm="layernorm",
        positions="learned",
        tied_embeddings=True,
    )
    job = training_step(model, ParallelPlan(**plan), global_batch=8, micro_batch=1, seq_len=128)
    cluster = star.cluster(2, 4, over=2.0, latency=1e-6)
    expected = reference(build(cluster, [job], roofline, [{}]), 2)
    run = simulate(cluster, job, steps=2, fold=False)
    assert [times_of(run, 0, rank) for rank in range(8)] == expected
