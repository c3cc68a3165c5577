"""Ops a second of the engine in full mode against a bare SimPy callback loop in the same run."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest
import simpy
from simpy.events import Timeout

import clustersim as cs

pytestmark = pytest.mark.benchmark

NUM_OPS = 1_000_000


def bare_events_per_s() -> float:
    """Callbacks a second of 64 chains of SimPy timeouts and nothing else."""
    env = simpy.Environment()
    count = 0

    def again(_: simpy.Event) -> None:
        nonlocal count
        count += 1
        if count < NUM_OPS:
            Timeout(env, 1).callbacks.append(again)

    for _ in range(64):
        Timeout(env, 1).callbacks.append(again)
    began = time.process_time()
    env.run()
    return count / (time.process_time() - began)


def ops_per_s(cluster: cs.Topology, job: cs.Job) -> tuple[int, float]:
    """Ops of a full run and how many a second, record included, scene and programs laid out before."""
    began = time.process_time()
    prepared = cs.simulate(cluster, job, fold=False, limits={"num_events": 1})
    laid_out = time.process_time() - began
    del prepared
    gc.collect()
    began = time.process_time()
    run = cs.simulate(cluster, job, fold=False)
    took = time.process_time() - began - laid_out
    num_ops = sum(len(lane.start_ns) for lane in run.record.lanes)
    return num_ops, num_ops / took


def mixed_program(seed: int) -> cs.Program:
    """Two streams and a collective; every rank's durations differ, so few ops end at one instant."""
    draw = np.random.default_rng(seed)
    delays = [
        cs.Delay(name=f"kernel {ns}", kind="mlp", measured_ns=int(ns)) for ns in draw.integers(20_000, 60_000, 50)
    ]
    reduce = cs.Collective(name="reduce", kind="all_reduce", slot="tp", nbytes=1_000_000, axis="tp")
    program = cs.Program(f"rank {seed}")
    last: list[int] = []
    for _ in range(4000):
        first = program.add(delays[draw.integers(50)], stream="compute", after=last)
        program.add(delays[draw.integers(50)], stream="compute")
        program.add(delays[draw.integers(50)], stream="side", after=[first])
        last = [program.add(reduce, stream="tp", after=[first])]
    return program


def test_without_sharing() -> None:
    cluster = cs.load_topology("dgx-h100", nodes=8)
    job = cs.Job(
        name="mixed",
        programs=tuple(mixed_program(seed) for seed in range(16)),
        program_of=np.repeat(np.arange(16), 4),
        families=(cs.GroupFamily(name="tp", members=np.arange(64).reshape(-1, 4), slots=("tp",)),),
    )
    bare = bare_events_per_s()
    num_ops, speed = ops_per_s(cluster, job)
    print(f"\nwithout sharing: {num_ops:,} ops at {speed:,.0f} a second, {speed / bare:.2f} of a bare SimPy loop")
    assert num_ops >= NUM_OPS
    assert speed >= 0.5 * bare


def test_with_sharing() -> None:
    cluster = cs.load_topology("dgx-h100", nodes=8, **{"fabric.radix": 16, "fabric.oversubscription": 4})
    plan = cs.ParallelPlan(tp=2, pp=4, dp=8)
    job = cs.training_step(
        cs.load_model("llama-3.1-8b"), plan, global_batch=768, micro_batch=1, seq_len=4096, num_devices=64
    )
    bare = bare_events_per_s()
    num_ops, speed = ops_per_s(cluster, job)
    print(f"\nwith sharing: {num_ops:,} ops at {speed:,.0f} a second, {speed / bare:.2f} of a bare SimPy loop")
    assert num_ops >= NUM_OPS
    assert speed >= 0.25 * bare
