"""Any offload policy: folded is full, what is taken is given back, and bytes cross as the policy says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.workload.offload import OffloadPolicy, Place, Subgroup
from clustersim.workload.offload.place import Updater
from clustersim.workload.offload.policy import Release
from clustersim.workload.op import Copy, Storage

SMALL: dict[str, Any] = {
    "name": "small",
    "num_layers": 4,
    "hidden": 256,
    "num_heads": 8,
    "num_kv_heads": 4,
    "head_dim": 32,
    "ffn_hidden": 768,
    "gated_mlp": True,
    "vocab": 1024,
    "max_seq_len": 512,
    "norm": "rmsnorm",
    "positions": "rope",
    "tied_embeddings": False,
}
RANKS = 16
TIERS = st.sampled_from(["gpu", "host", "nvme"])


@dataclass(frozen=True, kw_only=True)
class AnyPolicy(OffloadPolicy):
    """Whatever was drawn, subgroup by subgroup."""

    name: ClassVar[str] = "any"
    period: ClassVar[int] = 2
    places: tuple[Place, ...]
    releases: tuple[Release, ...]
    tiers: tuple[Updater, ...]
    num_kept: int
    run: int | None = None

    def place(self, subgroup: Subgroup) -> Place:
        return self.places[subgroup.index % len(self.places)]

    def depends(self, subgroup: Subgroup) -> Release:
        return self.releases[subgroup.index % len(self.releases)]

    def tier(self, subgroup: Subgroup) -> Updater:
        place = self.place(subgroup)
        on_gpu = "gpu" in (place.gradients, place.states)
        return "gpu" if on_gpu else self.tiers[subgroup.index % len(self.tiers)]

    def window(self, subgroup: Subgroup) -> int | None:
        return None if self.run is None else subgroup.index // self.run

    def order(self, subgroups: Sequence[Subgroup], step: int) -> Sequence[int]:
        return range(len(subgroups))[:: 1 if step == 0 else -1]

    def kept(self, subgroups: Sequence[Subgroup], step: int) -> frozenset[int]:
        return frozenset(list(self.order(subgroups, step))[len(subgroups) - self.num_kept :])


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, min_size=1, max_size=3).map(tuple)


POLICIES = st.builds(
    AnyPolicy,
    places=several(st.builds(Place, weights=TIERS, gradients=TIERS, states=TIERS)),
    releases=several(st.sampled_from(["norm", "gradient", "previous step"])),
    tiers=several(st.sampled_from(["cpu", "gpu"])),
    num_kept=st.integers(0, 2),
    run=st.sampled_from([None, None, 2, 3]),
    subgroup_size=st.sampled_from([10_000, 40_000, 10**9]),
    fused_tensors=st.booleans(),
    pinned=st.booleans(),
    pinned_weights=st.sampled_from([None, True, False]),
    pinned_states=st.sampled_from([None, True, False]),
    powers_of_two=st.booleans(),
    binding=st.sampled_from(["numa", "none"]),
    cast=st.sampled_from(["gpu", "cpu", "late", "update"]),
    cast_weights=st.sampled_from([None, "gpu", "cpu", "update"]),
    cast_threads=st.sampled_from([None, 1]),
    temporaries=st.booleans(),
    flat_buffer=st.booleans(),
    in_turn=st.booleans(),
    duplex=st.booleans(),
    scales=st.booleans(),
    norm=st.sampled_from(["gpu", "cpu"]),
    blocking=st.booleans(),
    serial=st.booleans(),
    each_micro_batch=st.booleans(),
    overlaps_forward=st.booleans(),
    gradient_buffers=st.sampled_from([None, 1, 3]),
    buffers=st.integers(1, 3),
    read_ahead=st.booleans(),
    write_behind=st.booleans(),
    staging=st.integers(1, 2),
    lock=st.booleans(),
)
PLANS = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2]),
        "pp": st.sampled_from([1, 1, 2]),
        "zero": st.sampled_from([0, 1, 2, 3]),
        "recompute": st.sampled_from(["none", "full"]),
    }
)


def micro_batches(plan: dict[str, Any]) -> int:
    """Two for each stage."""
    return 2 * int(plan.get("pp", 1))


def job_of(policy: OffloadPolicy, plan: dict[str, Any], **shape: Any) -> cs.Job:
    num_replicas = RANKS // (plan.get("tp", 1) * plan.get("pp", 1))
    return cs.training_step(
        cs.Model(**{**SMALL, **shape}),
        cs.ParallelPlan(**plan, offload=policy),
        global_batch=num_replicas * micro_batches(plan),
        micro_batch=1,
        seq_len=256,
        num_devices=RANKS,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(POLICIES, PLANS, st.sampled_from([{}, {"slow_ranks": {5: 1.3}}]))
def test_folded_is_full_and_nothing_is_lost(policy: AnyPolicy, plan: dict[str, Any], perturb: dict[str, Any]) -> None:
    job = job_of(policy, plan)
    topology = cs.load_topology("dgx-h100", nodes=RANKS // 8)
    runs = [cs.simulate(topology, job, steps=4, perturb=perturb, fold=fold) for fold in (False, True)]
    full, folded = (run.trace_of(range(RANKS)) for run in runs)
    for column in ("start_ns", "end_ns"):
        assert (full[column].to_numpy() == folded[column].to_numpy()).all()
    assert cs.summary(runs[0])["peak_memory_bytes"] == cs.summary(runs[1])["peak_memory_bytes"]
    for program in job.programs:
        arrays = program.arrays()
        for key in range(len(arrays.memory_keys)):
            assert arrays.memory[arrays.memory[:, 2] == key, 3].sum() == 0, arrays.memory_keys[key]
        for pool in range(len(arrays.pools)):
            use = arrays.pool_use[arrays.pool_use[:, 2] == pool]
            assert use[use[:, 1] == 0, 3].sum() == use[use[:, 1] == 1, 3].sum(), arrays.pools[pool]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(POLICIES, PLANS)
def test_bytes_that_cross(policy: AnyPolicy, plan: dict[str, Any]) -> None:
    """From the policy's answers alone: m micro-batches, gradients of 2 bytes, states of 12, weights of 2."""
    job = job_of(policy, plan)
    for program in job.programs:
        moved: dict[str, int] = {}
        arrays = program.arrays()
        for number in arrays.op.tolist():
            op = arrays.ops[number]
            if isinstance(op, Copy | Storage):
                moved[op.kind] = moved.get(op.kind, 0) + op.nbytes
        resident = arrays.resident
        on_drives = resident.get("nvme/optimizer", 0)
        reads, writes = moved.get("nvme_read", 0), moved.get("nvme_write", 0)
        waits = resident.get("nvme/gradients", 0)
        weights = resident.get("nvme/weights", 0)
        passes = 2 * micro_batches(plan)
        assert reads <= 2 * (on_drives + waits + passes * weights)
        assert writes <= 2 * (on_drives + waits + weights)
        if not policy.num_kept:
            assert reads == 2 * (on_drives + waits + passes * weights)
            assert writes == 2 * (on_drives + waits + weights)


@pytest.mark.parametrize("release", ["norm", "gradient", "previous step"])
def test_what_an_update_waits_for(release: Release) -> None:
    """With all gradients on the host only the release decides when the first update starts, that of the last blocks."""
    policy = AnyPolicy(
        places=(Place(),), releases=(release,), tiers=("cpu",), num_kept=0, subgroup_size=40_000, buffers=1
    )
    run = cs.simulate(cs.load_topology("dgx-h100", nodes=2), job_of(policy, {"zero": 3}), steps=4)
    trace = run.trace[run.trace["step"] == 3]
    updates = trace[trace["name"] == "cpu adam"]
    gradients = trace[trace["name"] == "offload gradients"]
    first, ends = updates["start_ns"].min(), np.sort(gradients["end_ns"].to_numpy())
    if release == "norm":
        assert first >= ends[-1]
    elif release == "gradient":
        assert ends[0] <= first < ends[-1]
    else:
        assert first < gradients["start_ns"].max()
