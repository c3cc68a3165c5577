"""The engine against a reference that fits a page: fractions, no SimPy, no folding, no fast path, no components."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clustersim.collective.traffic import GroupShape, Phase, Traffic
from clustersim.engine.simulate import simulate
from clustersim.engine.system.build import build
from clustersim.engine.system.system import System
from clustersim.hardware.roofline import roofline
from clustersim.workload.job import Job
from clustersim.workload.program import Program

Key = tuple[int, int]


def reference(system: System) -> dict[Key, Key]:
    """(rank, op) -> (start, end) [ns]; rates from scratch at every instant."""
    before: dict[Key, list[Key]] = {}
    members: dict[Key, list[Key]] = {}
    phases: dict[Key, list[tuple[int, int, dict[int, int]]]] = {}  # (ns, peak, loads) of those to come
    for rank, (p, kind) in enumerate(zip(system.program_of.tolist(), system.kind_of.tolist(), strict=True)):
        arrays = system.programs[p]
        for i, k in enumerate(arrays.op.tolist()):
            before[rank, i] = [(rank, int(b)) for b in arrays.edges[arrays.edges[:, 1] == i, 0]]
            if (cost := system.local[p, kind][k]) is not None:
                rows = [(e.rows[e.ranks == rank], int(e.loads[k])) for e in system.path_edges if e.program == p]
                loads = {int(row): load for at, load in rows for row in at if load}
                members[rank, i], phases[rank, i] = [(rank, i)], [(cost.ns, system.peak_load(p, k), loads)]
    for block in system.blocks:
        row, cost_of = block.cost.row.tolist(), block.cost.by_phase
        for g, ranks in enumerate(block.members.tolist()):
            edges = np.flatnonzero(block.cost.group == g)
            for k, s in enumerate(block.script.tolist()):
                key = (-1 - block.first - g, k)
                slots = [system.programs[system.program_of[r]].slots() for r in ranks]
                members[key] = [(r, int(of[x][k])) for r, of, x in zip(ranks, slots, block.slots, strict=True)]
                for c in range(*cost_of.phases.first[s : s + 2].tolist()):
                    loads = {row[e]: int(cost_of.load[e, c]) for e in edges if cost_of.load[e, c]}
                    part = int(cost_of.ns[g, c]), max(1, int(cost_of.peak_load[g, c])), loads
                    phases.setdefault(key, []).append(part)
    capacity = system.topology.resources.capacity.tolist()
    now, left, over, load = 0, dict[Key, Fraction](), list[Key](), dict[Key, dict[int, int]]()
    start, end, ns, peak = (dict[Key, int]() for _ in range(4))
    while len(end) < len(before):
        ready = [
            k for k in members if members[k][0] not in start and all(b in end for m in members[k] for b in before[m])
        ]
        start.update({member: now for key in ready for member in members[key]})
        begins, over = [*ready, *over], []
        for key in begins:
            if phases[key]:
                ns[key], peak[key], load[key] = phases[key].pop(0)
                left[key] = Fraction(1)
            else:
                end.update(dict.fromkeys(members[key], now))
        over = [key for key in begins if key in left and not ns[key]]
        left = {key: work for key, work in left.items() if ns[key]}
        if over or any(members[key][0] in end for key in begins):
            continue
        rate: dict[Key, Fraction] = {}
        while len(rate) < len(left):  # raise one level for all; freeze who is at full speed or meets a full resource
            room = {
                r: Fraction(c, 10**9) - sum(load[a].get(r, 0) * rate[a] for a in rate) for r, c in enumerate(capacity)
            }
            open_ = [a for a in left if a not in rate]
            share = {r: sum(Fraction(load[a].get(r, 0), peak[a]) for a in open_) for r in room}
            level = {r: room[r] / share[r] for r in room if share[r]}
            meets = {a: min([Fraction(peak[a], ns[a]), *(level[r] for r in load[a])]) for a in open_}
            rate |= {a: meets[a] / peak[a] for a in open_ if meets[a] == min(meets.values())}
        due = {a: now + ceil(left[a] / rate[a]) for a in left}
        left = {a: left[a] - rate[a] * (min(due.values()) - now) for a in left}
        now = min(due.values(), default=now)
        over = [a for a in due if due[a] == now]
        left = {a: work for a, work in left.items() if a not in over}
    return {op: (start[op], end[op]) for op in before}


def ring_step(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """Everybody sends all bytes to the next; no SMs, no memory traffic: links are all there is to share."""
    n = shape.num_members
    here = np.arange(n)
    phase = Phase(source=here, destination=(here + 1) % n, nbytes=np.full(n, nbytes), num_steps=1)
    return Traffic(algorithm="step", phases=(phase,), pipelined=True, memory_nbytes=np.zeros(n, dtype=np.int64))


def there_and_back(kind: str, nbytes: int, shape: GroupShape) -> Traffic:
    """All bytes to the next, a third of them back, and again to the next, one after the other."""
    n = shape.num_members
    here, there = np.arange(n), (np.arange(n) + 1) % n
    phases = tuple(
        Phase(source=a, destination=b, nbytes=np.full(n, size), num_steps=1)
        for a, b, size in ((here, there, nbytes), (there, here, nbytes // 3), (here, there, nbytes))
    )
    memory = np.full(n, nbytes + 1)
    return Traffic(algorithm="two ways", phases=phases, pipelined=False, memory_nbytes=memory)


@st.composite
def jobs(draw: st.DrawFn, star: ModuleType) -> Job:
    """Four ranks on two nodes, streams of kernels, copies, host work and collectives."""
    ways = st.sampled_from([ring_step, there_and_back])
    script = draw(st.lists(st.tuples(st.sampled_from([1000, 30_000, 100_001]), ways), max_size=4))
    programs = []
    for _ in range(4):
        program = Program()
        pending = list(script)
        for _ in range(draw(st.integers(1, 6))):
            amount = draw(st.integers(0, 50_000))
            op: Any = draw(
                st.sampled_from(
                    [star.sweep(amount + 1), star.copy("h2d", amount), star.copy("d2h", amount), star.host(amount)]
                )
            )
            stream = draw(st.sampled_from(["a", "b", "c"]))
            after: Iterable[int] = (
                draw(st.sets(st.sampled_from(range(len(program))), max_size=2)) if len(program) else ()
            )
            program.add(op, stream=stream, after=after)
            if pending and draw(st.booleans()):
                nbytes, way = pending.pop()
                program.add(star.collective("all_reduce", nbytes, algorithm=way), stream="net", after=[0])
        for nbytes, way in reversed(pending):
            program.add(star.collective("all_reduce", nbytes, algorithm=way), stream="net")
        programs.append(program)
    made: Job = star.job(*programs, families=(star.groups("dp", [0, 2], [1, 3]),))
    return made


def test_the_reference_fits_a_page() -> None:
    source = inspect.getsource(reference)
    assert len(source.splitlines()) <= 60
    assert "simpy" not in {name.id for name in ast.walk(ast.parse(source)) if isinstance(name, ast.Name)}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_engine_agrees_to_the_nanosecond(star: ModuleType, data: st.DataObject) -> None:
    job = data.draw(jobs(star))
    cluster = star.cluster(2, 2, over=2.0, nic=1e10, dram=3e10, pcie=2e10)
    expected = reference(build(cluster, [job], roofline, [{}]))
    for fold in (False, True):
        run = simulate(cluster, job, fold=fold)
        for rank in range(job.num_ranks):
            lane = run.record.lanes[run.record.lane_of[0][rank]]
            times = list(zip(lane.start_ns.tolist(), lane.end_ns.tolist(), strict=True))
            assert times == [expected[rank, i] for i in range(len(times))]
