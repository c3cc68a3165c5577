"""How long each strategy holds up training: closed forms alone, more where ranks or jobs share a store.

On a cluster made by hand: copies off a GPU at 20 GB/s, one thread that serialises at 50 GB/s, a drive that writes
2 GB/s.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import clustersim as cs
from clustersim.topology.topology import Topology
from clustersim.workload.checkpoint import Asynchronous, Checkpoint, Lazy, Synchronous
from clustersim.workload.model import Model

OFF_GPU, SERIALISED, WRITTEN = 2e10, 5e10, 2e9
EVERY = 4
"""Steps, enough for the drive to write all of a save."""


@pytest.fixture
def node(star: ModuleType) -> Topology:
    """Four GPUs whose kernels leave HBM the 20 GB/s of a copy, so that copies slow nothing."""
    cluster: Topology = star.cluster(1, 4, gpus=(replace(star.CARD, memory_bandwidth=9e11),))
    return cluster


def job_of(model: Model, policy: Checkpoint | None, *, tokens: int = 4096, dp: int = 1, **fields: Any) -> cs.Job:
    seq_len = min(tokens, 128)
    return cs.training_step(
        model,
        cs.ParallelPlan(dp=dp, zero=1, checkpoint=policy),
        global_batch=tokens // seq_len * dp,
        micro_batch=tokens // seq_len,
        seq_len=seq_len,
        num_devices=dp,
        **fields,
    )


def durations(node: Topology, job: cs.Job, *others: cs.Job, steps: int = 2 * EVERY) -> np.ndarray[Any, Any]:
    """Of each step of the first job [s]."""
    run = cs.simulate(node, [job, *others], steps=steps)
    mine = run.trace[run.trace["run"] == run.trace["run"].iloc[0]]
    table = cs.analysis.breakdown(mine)
    return table[table["rank"] == 0]["duration"].to_numpy(dtype=float)


def held_up(node: Topology, model: Model, policy: Checkpoint, **fields: Any) -> float:
    """What one save adds to the steps from one save to the next [s]."""
    saving, plain = durations(node, job_of(model, policy, **fields)), durations(node, job_of(model, None, **fields))
    return float((saving[EVERY:] - plain[EVERY:]).sum())


def saved(model: Model) -> int:
    """Two bytes of weight and twelve of optimizer state a parameter [B]."""
    return 14 * model.num_parameters


@pytest.mark.parametrize("chunk", [2**22, 2**30])
def test_synchronous_waits_for_copy_and_serialisation_and_write(node: Topology, llama: Model, chunk: int) -> None:
    policy = Synchronous(every=EVERY, tier="nvme", chunk_bytes=chunk, pinned=True)
    seconds = saved(llama) * (1 / OFF_GPU + 1 / SERIALISED + 1 / WRITTEN)
    assert held_up(node, llama, policy) == pytest.approx(seconds, rel=1e-5)


def test_asynchronous_waits_for_the_copy(node: Topology, llama: Model) -> None:
    policy = Asynchronous(every=EVERY, tier="nvme", chunk_bytes=2**22)
    assert held_up(node, llama, policy) == pytest.approx(saved(llama) / OFF_GPU, rel=1e-4)


@pytest.mark.parametrize("tokens", [32, 4096])
def test_lazy_waits_for_what_of_the_copy_is_longer_than_the_passes(node: Topology, llama: Model, tokens: int) -> None:
    policy = Lazy(every=EVERY, tier="nvme", chunk_bytes=2**22)
    run = cs.simulate(node, job_of(llama, None, tokens=tokens), steps=1)
    update = run.trace[run.trace["phase"] == "optimizer"]["start_ns"].min() / 1e9
    expected = max(0.0, saved(llama) / OFF_GPU - update)
    assert (expected > 0) == (tokens == 32)
    assert held_up(node, llama, policy, tokens=tokens) == pytest.approx(expected, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("kind", [Asynchronous, Lazy])
def test_in_memory_nothing_is_written(node: Topology, llama: Model, kind: type[Checkpoint]) -> None:
    job = job_of(llama, kind(every=2, tier="host"))
    assert not job.pools
    assert job.programs[0].arrays().resident["host_pinned/checkpoints"] == 2 * saved(llama)
    assert not [op for op in job.programs[0].arrays().ops if isinstance(op, cs.Storage)]


def test_ranks_of_a_node_share_its_drive(node: Topology, llama: Model) -> None:
    """Four ranks save a quarter each: copies and passes of the CPU beside each other, the drive's time is one."""
    policy = Synchronous(every=EVERY, tier="nvme", pinned=True)
    saving, plain = (durations(node, job_of(llama, one, dp=4)) for one in (policy, None))
    part = saved(llama) / 4
    alone = part * (1 / OFF_GPU + 1 / SERIALISED + 1 / WRITTEN)
    together = part * (1 / OFF_GPU + 4 / SERIALISED + 4 / WRITTEN)
    found = float((saving[EVERY:] - plain[EVERY:]).sum())
    assert found > 2 * alone
    assert 0.995 * together < found <= together  # new weights are gathered beside the save


def test_another_job_on_the_node_makes_a_save_longer(node: Topology, llama: Model) -> None:
    policy = Synchronous(every=EVERY, tier="nvme", pinned=True)
    mine = job_of(llama, policy, devices=[0], name="mine")
    other = job_of(llama, policy, devices=[1], name="other")
    alone, shared = durations(node, mine), durations(node, mine, other)
    grown = float((shared[EVERY:] - alone[EVERY:]).sum())
    assert grown == pytest.approx(saved(llama) * (1 / SERIALISED + 1 / WRITTEN), rel=1e-3)


def test_a_short_buffer_makes_copies_wait_for_writes(node: Topology, llama: Model) -> None:
    """With room for a tenth, all but that leaves the GPU at the pace of the drive; the trace names the buffer."""
    room = saved(llama) // 10
    policy = Asynchronous(every=EVERY, tier="nvme", chunk_bytes=room // 4, pool_bytes=room)
    found = held_up(node, llama, policy)
    least, chunk = (saved(llama) - room) / WRITTEN, room // 4
    assert least < found < least + chunk / WRITTEN + 2 * chunk / OFF_GPU
    run = cs.simulate(node, job_of(llama, policy), steps=2 * EVERY)
    waits = run.trace[(run.trace["pool"] == "checkpoint buffer") & (run.trace["step"] == EVERY - 1)]
    assert set(waits["stream"]) == {"checkpoint copy"}
    assert waits["wait_ns"].sum() / 1e9 + saved(llama) / OFF_GPU == pytest.approx(found, rel=1e-3)
    table = cs.analysis.breakdown(run.trace)
    spent = table.drop(columns=["run", "step", "rank", "multiplicity", "duration"]).sum(axis=1)
    assert spent.to_numpy() == pytest.approx(table["duration"].to_numpy(), abs=1e-9)


def test_writes_that_do_not_keep_up_set_the_pace(node: Topology, llama: Model) -> None:
    """Saved after every step, a step takes as long as the drive needs for all of a save."""
    run = cs.simulate(node, job_of(llama, Lazy(tier="nvme"), tokens=128))
    assert cs.summary(run)["step_time_s"] == pytest.approx(saved(llama) / WRITTEN, rel=1e-3)
