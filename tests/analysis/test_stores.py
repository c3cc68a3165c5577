"""What fills GPUs, nodes and the site, as the engine leaves it: folded or not, of several classes and jobs."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clustersim as cs
from clustersim.analysis.stores import StorePeak, fullest, store_peaks
from clustersim.trace.result import Result
from clustersim.workload.job import Pool

FOLD = pytest.mark.parametrize("fold", [True, False])


def held(run: Result) -> dict[str, StorePeak]:
    return fullest(store_peaks(run.record, run.topology))


def staging(star: ModuleType, *ns: int, pools: dict[str, Pool] | None = None, **resident: int) -> cs.Job:
    """Ranks that copy 400 B down after so long [ns], and hold them on the host for another 100 ns."""
    programs = []
    for first in ns:
        p = star.program()
        p.resident.update({key.replace("__", "/"): nbytes for key, nbytes in resident.items()})
        before = p.add(star.delay(first, name="before"), stream="main")
        uses = dict.fromkeys(pools or {}, 1)
        down = p.add(
            star.copy("d2h", 400, name=f"down {first}"),
            stream="copy",
            after=[before],
            start_bytes={"host_pinned/buffers": 400},
            takes=uses,
        )
        p.add(
            star.delay(100, name="empty"),
            stream="host",
            after=[down],
            end_bytes={"host_pinned/buffers": -400},
            gives=uses,
        )
        programs.append(p)
    job: cs.Job = star.job(*programs, pools=pools or {})
    return job


@FOLD
def test_ranks_of_a_node_fill_its_host_at_the_same_time_or_not(star: ModuleType, fold: bool) -> None:
    """Copies take 20 ns alone; those at 0 overlap with each other and not with the one at 500."""
    cluster = replace(star.cluster(2, 3, pcie=1e12), tier_bytes={"host": 799})
    run = cs.simulate(cluster, staging(star, 0, 0, 500, 0, 500, 900), fold=fold)
    host = held(run)["host"]
    assert (host.num_ranks, host.nbytes, host.over_bytes, host.op, host.rank) == (3, 800, 1, "down 0", 0)
    said = cs.summary(run)
    assert said["status"] == "out_of_memory"
    assert said["out_of_memory"] == {
        "rank": 0,
        "stage": None,
        "op": "down 0",
        "tier": "host",
        "category": "buffers",
        "needed_bytes": 800,
        "capacity_bytes": 799,
        "over_bytes": 1,
    }
    assert said["peak_memory_bytes"]["host_pinned"] == 400
    assert said["peak_store_bytes"]["host"] == 800


@FOLD
def test_jobs_that_share_a_node_add_up(star: ModuleType, fold: bool) -> None:
    """Job 0 on the first GPU of each node, job 1 on the second; the third node has only job 0's."""
    cluster = star.cluster(3, 2)
    jobs = [
        replace(staging(star, 0, 0, 0, nvme__optimizer=10), devices=np.array([0, 2, 4])),
        replace(staging(star, 50, 50, nvme__optimizer=7), name="other", devices=np.array([1, 3])),
    ]
    peaks = list(store_peaks(cs.simulate(cluster, jobs, fold=fold).record, cluster))
    assert sorted({(p.store, p.num_ranks, p.nbytes) for p in peaks if p.store == "nvme"}) == [
        ("nvme", 1, 10),
        ("nvme", 2, 17),
    ]
    assert {p.nbytes for p in peaks if p.store == "host"} == {400, 800}


@FOLD
def test_a_file_system_is_filled_by_all_ranks(star: ModuleType, fold: bool) -> None:
    cluster = replace(star.cluster(4, 2), tier_bytes={"file_system": 800})
    job = staging(star, *[0] * 8, file_system__checkpoint=100)
    run = cs.simulate(cluster, job, fold=fold)
    assert (held(run)["file_system"].num_ranks, held(run)["file_system"].nbytes) == (8, 800)
    assert cs.summary(run)["out_of_memory"] is None
    small = replace(cluster, tier_bytes={"file_system": 799})
    lack = cs.summary(cs.simulate(small, job, fold=fold))["out_of_memory"]
    assert (lack["tier"], lack["category"], lack["op"], lack["over_bytes"]) == ("file_system", "checkpoint", None, 1)


@FOLD
@pytest.mark.parametrize(("scope", "of_rank", "of_node"), [("rank", 4000, 8000), ("node", 0, 4000)])
def test_pools_count_whole_from_the_start(star: ModuleType, fold: bool, scope: Any, of_rank: int, of_node: int) -> None:
    """Once a rank, or once a node whatever its ranks take of it."""
    pool = Pool(capacity=4, scope=scope, memory="host_pinned/pool", unit_bytes=1000)
    p = star.program()
    p.add(star.copy("d2h", 400), stream="copy", takes={"ring": 1}, gives={"ring": 1})
    run = cs.simulate(star.cluster(2, 2), star.job(p, p, p, p, pools={"ring": pool}), fold=fold)
    assert cs.summary(run)["peak_memory_bytes"]["host_pinned"] == of_rank
    host = held(run)["host"]
    assert (host.nbytes, host.op, host.by_category, host.by_tier) == (
        of_node,
        None,
        {"pool": of_node},
        {"host_pinned": of_node},
    )


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"memory": "host_pinned/pool"}, "unit_bytes: 0 must be 1 or more"),
        ({"unit_bytes": 5}, "unit_bytes: 5 must be .* 0 without"),
        ({"memory": "gpu/pool", "unit_bytes": 1, "scope": "node"}, "scope: node of gpu/pool"),
        ({"memory": "host_pinned/pool", "unit_bytes": 1, "scope": "job"}, "scope: job of host_pinned/pool"),
        ({"memory": "disk/pool", "unit_bytes": 1}, "scope: rank of disk/pool"),
    ],
)
def test_pools_of_memory_that_nobody_could_share(fields: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Pool(capacity=1, **fields)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30)
@given(data=st.data())
def test_folded_fills_as_full(data: st.DataObject, star: ModuleType) -> None:
    """Node by node: the same peaks of the same stores, from times that pools of nodes decide."""
    nodes, per_node = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    ns = data.draw(st.lists(st.sampled_from([0, 10, 300]), min_size=nodes * per_node, max_size=nodes * per_node))
    scope, capacity = data.draw(st.sampled_from(["rank", "node", "job"])), data.draw(st.integers(1, 2))
    job = staging(star, *ns, pools={"ring": Pool(capacity=capacity, scope=scope)}, host_pageable__state=3)
    cluster = star.cluster(nodes, per_node)
    folded, full = (cs.simulate(cluster, job, fold=fold) for fold in (True, False))
    mine, its = (
        sorted((p.store, p.num_ranks, p.nbytes, sorted(p.by_category.items())) for p in store_peaks(r.record, cluster))
        for r in (folded, full)
    )
    assert set(map(repr, mine)) == set(map(repr, its))
    most = capacity if scope == "job" else min(per_node, capacity * (per_node if scope == "rank" else 1))
    assert held(full)["host"].nbytes <= 400 * min(most, per_node) + 3 * per_node
