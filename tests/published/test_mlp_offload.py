"""What the published times of ZeRO-3 on NVMe and of MLP-Offload say of the drive: reads and writes share it.

The times themselves are held by ``test_systems.py``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import clustersim as cs
from clustersim.analysis.phases import PHASES
from clustersim.library.job import load_job
from clustersim.study.point import prepare, run_point
from clustersim.topology.resources import ResourceTable
from clustersim.topology.topology import Topology

UPDATE = ("swap_in", "update", "swap_out", "wait")
PARAMETERS = {"40b": 48.162e9, "70b": 68.604e9, "120b": 106.727e9}
"""The artefact's logs have 48.16 and 68.61 billion for what it calls 40B and 70B."""


@cache
def infinity(size: str) -> cs.Result:
    """Two steps of ZeRO-Infinity."""
    return run_point(load_job(f"zero-infinity-{size}").with_values({"steps": 2}))


def update_s(summary: cs.Summary) -> float:
    return float(sum(summary["phases_s"][name] for name in UPDATE))


def duplex(topology: Topology) -> Topology:
    """With a second drive beside the first, for writes alone."""
    row = int(topology.local["nvme_write"].rows[0, 0])
    block = next(b for b in topology.resources.blocks if b.kind == "drive")
    other = replace(block, label="second drive", shape=())
    path = topology.local["nvme_write"]
    rows = np.where(path.rows == row, len(topology.resources), path.rows)
    return replace(
        topology,
        resources=ResourceTable([*topology.resources.blocks, other]),
        local={**topology.local, "nvme_write": replace(path, rows=rows)},
    )


@pytest.mark.parametrize("size", PARAMETERS)
def test_sizes_are_those_of_the_logs(size: str) -> None:
    assert cs.load_model(f"mlp-offload-{size}").num_parameters == pytest.approx(PARAMETERS[size], rel=1e-4)


@pytest.mark.parametrize(("size", "published"), [("40b", 213.61), ("70b", 336.43), ("120b", 475.48)])
def test_a_full_duplex_drive_misses_by_far(size: str, published: float) -> None:
    point = prepare(load_job(f"zero-infinity-{size}").with_values({"steps": 2}))
    half = update_s(cs.summary(infinity(size)))
    full = update_s(cs.summary(run_point(replace(point, topology=duplex(point.topology)))))
    assert half == pytest.approx(published, rel=0.12)
    assert full < 0.7 * published


@pytest.mark.parametrize("size", PARAMETERS)
def test_the_update_takes_what_one_half_duplex_drive_needs(size: str) -> None:
    """(16 read / 6.9 GB/s + 12 written / 5.3 GB/s) a parameter, and the last gradients."""
    bound = PARAMETERS[size] * (16 / 6.9e9 + 12 / 5.3e9)
    found = update_s(cs.summary(infinity(size)))
    assert bound < found < 1.06 * bound


def test_the_terms_add_up() -> None:
    """Forward, backward, swap-in, update and swap-out of a step with 10B and 70B, within 1 %."""
    for job in ("zero-infinity-10b-v100", "zero-infinity-70b", "mlp-offload-70b"):
        found = cs.summary(run_point(load_job(job)))
        assert sum(found["phases_s"][name] for name in PHASES) == pytest.approx(found["step_time_s"], rel=1e-6)
        assert 0 <= found["phases_s"]["swap_in_overlapped"] < 1
        assert found["phases_s"]["swap_in"] > 0.3 * found["step_time_s"]


def test_where_a_rank_waits() -> None:
    """Logs of 70B: 324.7 s for reads and 7.2 s for writes; of the update the CPU works 4.5 s."""
    found = cs.summary(infinity("70b"))["phases_s"]
    assert found["swap_in"] == pytest.approx(324.7, rel=0.12)
    assert found["swap_out"] + found["update"] < 0.12 * 324.7
    trace = infinity("70b").trace
    mine = trace[(trace["step"] == 1) & (trace["rank"] == 0)]
    works = mine[mine["name"].isin(["scale gradients", "cpu adam"])]
    assert 2.5 < (works["end_ns"] - works["start_ns"]).sum() / 1e9 < 9


def test_another_node_and_another_size() -> None:
    """Polaris: a slower drive for writes, more of the file system; the split by rates sends a larger part there."""
    values = {"topology": "polaris", "model": "mlp-offload-40b", "plan.offload.shares": [48, 69]}
    setup = load_job("mlp-offload-40b")
    by_rate = setup.with_values({"topology": "polaris"})
    assert prepare(by_rate).job.plan["offload"]["ratio"] == 3
    shares = replace(setup, values={k: v for k, v in setup.values.items() if k != "plan.offload.ratio"})
    fitted = prepare(shares.with_values({"topology": "polaris"})).job.plan["offload"]["shares"]
    assert fitted == (4800, 6900)
    ratio, rates = (cs.summary(run_point(one))["step_time_s"] for one in (by_rate, shares.with_values(values)))
    assert rates < 0.8 * ratio
