"""Forward, backward, swap-in, update, swap-out: by hand, and against the step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import clustersim as cs
from clustersim.analysis import phases
from clustersim.analysis.phases import PHASES, overlapped, phases_ns
from clustersim.trace.frame import frame
from clustersim.trace.steps import step_edges
from clustersim.workload.offload import OffloadPolicy, Place, Subgroup
from clustersim.workload.op import Storage


def access(kind: str) -> Storage:
    return Storage(name="swap", kind=kind, nbytes=16)  # type: ignore[arg-type]


@pytest.fixture
def lane(scene):
    """A gradient is written while the backward pass goes on; two subgroups are read, updated and written."""
    lane = scene.lane(rank=0)
    lane.add(scene.compute(), (0, 0, 100), phase="forward")
    lane.add(scene.compute(), (100, 120, 300), phase="backward")
    lane.add(scene.copy("d2h"), (250, 250, 320), stream="d2h", phase="backward")
    lane.add(access("nvme_write"), (320, 320, 350), stream="nvme_write", phase="backward")
    lane.add(access("nvme_read"), (350, 360, 420), stream="nvme_read", phase="optimizer")
    lane.add(access("nvme_read"), (420, 420, 480), stream="nvme_read", phase="optimizer")
    lane.add(scene.host(), (420, 420, 450), stream="cpu", phase="optimizer")
    lane.add(access("nvme_write"), (450, 450, 500), stream="nvme_write", phase="optimizer")
    lane.add(scene.host(), (480, 480, 510), stream="cpu", phase="optimizer")
    lane.add(access("nvme_write"), (510, 510, 560), stream="nvme_write", phase="optimizer")
    other = scene.lane(rank=1)
    other.add(scene.compute(), (0, 0, 600), phase="forward")
    return scene


def test_by_hand(lane) -> None:
    record = lane.record()
    (mine,) = [found for found in record.lanes if found.rank == 0]
    spent = phases_ns(mine, step_edges(record.lanes))
    terms = dict(zip((*PHASES, "reads", "writes"), spent[0].tolist(), strict=True))
    assert terms == {
        "forward": 100,
        "backward": 220,  # with its wait, and the copy behind its last kernel
        "swap_in": 100,  # from 350, waiting for its turn, to 420, and from 450 to 480
        "update": 60,
        "swap_out": 80,  # the gradient from 320 to 350, the last state from 510 to 560
        "wait": 40,
        "reads": 130,
        "writes": 130,
    }
    assert overlapped(spent)[0].tolist() == pytest.approx([1 - 100 / 130, 1 - 80 / 130])


def test_the_frame_says_the_same(lane) -> None:
    record = lane.record()
    table = phases(frame(record)).set_index("rank")
    for found in record.lanes:
        spent = phases_ns(found, step_edges(record.lanes))[0]
        assert [round(table.loc[found.rank, name] * 1e9) for name in PHASES] == spent[: len(PHASES)].tolist()
    assert table.loc[0, "swap_in_overlapped"] == pytest.approx(30 / 130)


@dataclass(frozen=True, kw_only=True)
class OnDrives(OffloadPolicy):
    """States and gradients on NVMe."""

    name: ClassVar[str] = "on drives"
    subgroup_size: int = 50_000_000

    def place(self, subgroup: Subgroup) -> Place:
        return Place(gradients="nvme", states="nvme")


def test_the_terms_add_up_to_the_step() -> None:
    plan = cs.ParallelPlan(zero=3, dp=8, recompute="full", offload=OnDrives())
    job = cs.training_step(
        cs.load_model("llama-3.2-1b"), plan, global_batch=8, micro_batch=1, seq_len=2048, num_devices=8
    )
    run = cs.simulate(cs.load_topology("dgx-h100"), job, steps=3)
    table = phases(run.trace)
    assert np.allclose(table[list(PHASES)].sum(axis=1), table["duration"], rtol=1e-9)
    said = cs.summary(run)
    assert sum(said["phases_s"][name] for name in PHASES) == pytest.approx(said["step_time_s"], rel=1e-9)
    assert said["phases_s"]["swap_in"] > 0.3 * said["step_time_s"]
    assert "swap-in" in str(said)


def test_jobs_without_offloading_have_none() -> None:
    job = cs.training_step(
        cs.load_model("gpt2"), cs.ParallelPlan(), global_batch=8, micro_batch=1, seq_len=128, num_devices=8
    )
    assert cs.summary(cs.simulate(cs.load_topology("dgx-h100"), job))["phases_s"] is None
