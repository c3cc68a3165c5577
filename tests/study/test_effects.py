"""Settings said to have no effect have none: the run with and without them is the same to the nanosecond."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clustersim.library.job import JobSetup
from clustersim.study.effects import _RULES
from clustersim.study.point import prepare, run_point
from clustersim.trace.result import Result

# key -> a value and settings with which it does nothing; a value and settings with which it does something.
ONE_NODE: dict[str, Any] = {"nodes": 1}
TWO_NODES: dict[str, Any] = {"nodes": 2}
PAIRS = (0, 3, 1, 2, 4, 7, 5, 6)
TREE: dict[str, Any] = {"nodes": 8, "fabric": "fat_tree", "fabric.radix": 32}
CASES: dict[str, list[tuple[Any, dict[str, Any], bool]]] = {
    "seed": [(7, ONE_NODE, False)],
    "fabric": [("fat_tree", ONE_NODE, False), ("fat_tree", TREE, True)],
    "fabric.oversubscription": [(4.0, ONE_NODE, False), (4.0, TREE, True)],
    "fabric.levels": [(3, ONE_NODE, False), (3, TREE, False)],
    "fabric.radix": [
        (32, ONE_NODE, False),
        (32, TWO_NODES, False),
        (32, TREE | {"fabric.oversubscription": 3.0}, True),
    ],
    "fabric.ecmp": [("hashed", ONE_NODE, False), ("hashed", TWO_NODES, False), ("hashed", TREE, True)],
    "fabric.ecmp_seed": [(7, TREE, False), (7, TREE | {"fabric.ecmp": "hashed"}, True)],
    "fabric.sharp": [
        (True, ONE_NODE, False),
        (True, TWO_NODES | {"plan.zero": 1}, False),
        (True, TWO_NODES, True),
    ],
    "nics_per_node": [(4, ONE_NODE, False), (8, TWO_NODES, False), (4, TWO_NODES, True)],
    "communication.node": [
        ("nccl", ONE_NODE | {"plan.dp": 1, "nodes": 1, "plan.tp": 1, "topology": "gh200"}, False),
        ("nccl", ONE_NODE, True),
    ],
    "communication.network": [("efa", ONE_NODE, False), ("efa", TWO_NODES, True)],
    "plan.overlap_dp": [(False, ONE_NODE | {"plan.tp": 4, "plan.pp": 2}, False), (False, ONE_NODE, True)],
    "plan.unaligned": [
        ("vector", ONE_NODE, False),
        ("vector", ONE_NODE | {"plan.attention": "unfused", "seq_len": 100}, True),
    ],
    "plan.cuda_graphs": [
        (("attn",), ONE_NODE, False),
        (("moe_router", "moe_preprocess"), ONE_NODE | {"plan.launch": "modules"}, False),
        (("mamba",), ONE_NODE | {"plan.launch": "modules"}, False),
        (("attn",), ONE_NODE | {"plan.launch": "modules"}, True),
    ],
    "plan.axis_order": [
        (("dp", "tp", "cp", "pp"), ONE_NODE, False),
        (("dp", "tp", "cp", "pp"), TWO_NODES | {"plan.tp": 2}, True),
    ],
    "overlap.sm": [(0.0, {"plan.overlap_dp": False}, False), (0.0, ONE_NODE | {"micro_batch": 8}, True)],
    "overlap.hbm": [(0.0, {"plan.overlap_dp": False}, False), (20.0, ONE_NODE, True)],
    "perturb.slow_ranks": [({0: 1.0}, ONE_NODE, False), ({0: 2.0}, ONE_NODE, True)],
    "perturb.slow_links": [
        ({"node0/nic0.tx": 0.5}, ONE_NODE, False),
        ({"node0/nic0.tx": 1.0}, TWO_NODES, False),
        ({"node0/nic0.tx": 0.5}, TWO_NODES, True),
    ],
    "perturb.failed_links": [
        (("leaf0/up",), TWO_NODES, False),
        (("leaf0/up",) * 12, TREE, True),
        (("node0/nic0",), ONE_NODE, False),
        (("rail0",), TWO_NODES, True),
    ],
}
DRIVES: dict[str, Any] = ONE_NODE | {"plan.zero": 3, "plan.offload.policy": "zero-infinity"}
CASES |= {
    "host.drive": [("nvme-gen5", ONE_NODE, False), ("nvme-gen5", DRIVES, True)],
    "host.num_drives": [(4, ONE_NODE, False), (4, DRIVES, True)],
    "host.drive_uplink": [("pcie3", ONE_NODE, False), ("pcie3", DRIVES, True)],
    "host.request_bytes": [("4 KB", ONE_NODE, False), ("4 KB", DRIVES, True)],
    "host.queue_depth": [(1, ONE_NODE, False)],
    **{
        f"storage.{key}": [(value, {"topology": "jlse-h100"} | ONE_NODE, False)]
        for key, value in {
            "read_bandwidth": 9e9,
            "write_bandwidth": 9e9,
            "node_read_bandwidth": 1e9,
            "node_write_bandwidth": 1e9,
            "latency": 0.1,
            "metadata_latency": 0.1,
            "capacity_bytes": 10**12,
        }.items()
    },
}
ON_HOST: dict[str, Any] = {"global_batch": 8, "plan.zero": 3, "plan.offload.policy": "zero-offload"} | ONE_NODE
RUNS: dict[str, Any] = ON_HOST | {
    "plan.zero": 2,
    "plan.offload.policy": "zero-2-offload",
    "plan.bucket_bytes": 2,
}
TWO_TIERS: dict[str, Any] = {
    "topology": "jlse-h100",
    "global_batch": 4,
    "plan.zero": 3,
    "plan.offload.policy": "mlp-offload",
    "plan.offload.subgroup_size": 2_000_000,
    "plan.offload.cache": 0,
    "nodes": 1,
}
FEW: dict[str, Any] = TWO_TIERS | {"plan.offload.subgroup_size": 4_000_000}
MANY: dict[str, Any] = TWO_TIERS | {"plan.offload.subgroup_size": 1_000_000}
ONE_TIER: dict[str, Any] = TWO_TIERS | {"plan.offload.tiers": ("nvme",)}
STAGED: dict[str, Any] = {
    "global_batch": 8,
    "plan.zero": 3,
    "plan.offload.policy": "deep-optimizer-states",
    "plan.offload.subgroup_size": 100_000,
    "nodes": 1,
}
AHEAD: dict[str, Any] = {"global_batch": 8, "plan.zero": 3, "plan.offload.policy": "superoffload", "nodes": 1}
RELEASE: dict[str, Any] = AHEAD | {"plan.offload.policy": "superoffload-release", "plan.clip": False}
ON_GPU: dict[str, Any] = {
    "global_batch": 8,
    "plan.zero": 3,
    "plan.offload.policy": "twinflow",
    "plan.offload.ratio": 0.0,
    "nodes": 1,
}
ON_PCIE: dict[str, Any] = {"topology": "a100-pcie-pairs", "nodes": 1}
HOST_CASES: dict[str, list[tuple[Any, dict[str, Any], bool]]] = {
    "cpu": [("epyc-7763", {}, False), ("epyc-7763", ON_HOST, True)],
    "link": [("pcie3", {}, False), ("pcie3", ON_HOST, True), ("pcie3", ON_PCIE, True)],
    "uplink": [("pcie3", {}, False)],
    "socket_link": [("xgmi-epyc-7002", {}, False)],
    "num_socket_links": [(1, {}, False), (1, ON_PCIE, True)],
    "memory_bytes": [(2**40, {}, False)],
}
OFFLOAD_CASES: dict[str, list[tuple[Any, dict[str, Any], bool]]] = {
    "buffers": [(1, ON_HOST, False), (1, TWO_TIERS, True), (1, TWO_TIERS | {"plan.offload.cache": 1000}, True)],
    "gradient_buffers": [(1, ON_HOST, False)],
    "read_ahead": [(False, ON_HOST, False), (False, TWO_TIERS, True)],
    "write_behind": [(False, ON_HOST, False), (False, TWO_TIERS, True)],
    "lock": [(True, ON_HOST, False), (True, DRIVES, True)],
    "staging": [(2, ON_HOST, False)],
    "duplex": [(False, ON_HOST, False), (True, STAGED, True)],
    "adam": [("adam_torch", ON_GPU, False), ("adam_torch", ON_HOST, True)],
    "update_threads": [(1, ON_GPU, False), (1, ON_HOST, True)],
    "cast_threads": [(1, ON_HOST, False), (2, STAGED, True)],
    "temporaries": [(True, ON_HOST, False), (True, STAGED, True)],
    "round_robin": [
        (False, ON_HOST, False),
        (False, RUNS | {"plan.offload.policy": "zero-offload"}, True),
        (True, RUNS, True),
        (True, RUNS | {"topology": "gh200", "global_batch": 1, "plan.zero": 0}, False),
    ],
    "validates": [(True, ON_HOST, False)],
    "rolls_back": [(True, ON_HOST, False), (True, AHEAD, True)],
    "asynchronous": [(False, RELEASE | {"plan.clip": True}, False), (False, RELEASE, True)],
    "in_turn": [(True, ON_HOST, False), (True, DRIVES, False), (False, STAGED, True)],
    "overlaps_forward": [
        (True, ON_HOST, False),
        (True, ON_HOST | {"steps": 1}, False),
        (True, ON_HOST | {"plan.offload.subgroup_size": 100_000}, True),
        (True, ON_HOST | {"plan.offload.subgroup_size": 100_000, "plan.launch": "eager", "steps": 1}, False),
    ],
    "cache": [
        (50, FEW, False),
        (12, FEW, False),
        (1, FEW, True),
        (5, FEW | {"plan.offload.reverses": False}, False),
        (50, MANY, True),
    ],
    "ratio": [(2, ONE_TIER, False), (2, TWO_TIERS, True)],
    "shares": [((5,), ONE_TIER, False), ((5, 1), TWO_TIERS, True)],
}
CASES |= {f"host.{key}": cases for key, cases in HOST_CASES.items()}
CASES |= {f"plan.offload.{key}": cases for key, cases in OFFLOAD_CASES.items()}
SAVED: dict[str, Any] = ONE_NODE | {"plan.checkpoint.policy": "lazy", "plan.checkpoint.tier": "nvme"}
ALONE: dict[str, Any] = SAVED | {"topology": "gh200", "global_batch": 1, "plan.checkpoint.tier": "host"}
CASES["plan.checkpoint.chunk_bytes"] = [
    (10**12, SAVED, False),
    (2**28 - 1, SAVED, False),
    (10**6, SAVED, True),
    (10**12, ALONE, True),
]
GRAPH_CASES: dict[str, list[tuple[Any, dict[str, Any], bool]]] = {
    "graph.placement": [("list", {}, False), ("list", {"graph.devices": 2, "nodes": 1}, True)],
    "graph.gpu_order": [(PAIRS, {}, False), (PAIRS, {"graph.devices": 2}, True)],
    "graph.bucket_bytes": [(10**6, {"graph.replicas": 1}, False), (10**6, {}, True)],
}
GRAPH_FLAT = [(key, *case) for key, cases in GRAPH_CASES.items() for case in cases]
FLAT = [(key, *case) for key, cases in CASES.items() for case in cases]


def told(result: Result, key: str) -> bool:
    return any(warning.startswith(f"{key}: no effect") for warning in result.warnings)


def same(one: Result, other: Result) -> bool:
    pairs = zip(one.record.lanes, other.record.lanes, strict=False)
    return len(one.record.lanes) == len(other.record.lanes) and all(
        np.array_equal(a.end_ns, b.end_ns)
        and np.array_equal(a.start_ns, b.start_ns)
        and a.arrays.resident == b.arrays.resident
        for a, b in pairs
    )


def test_every_rule_has_a_case() -> None:
    assert {*CASES, *GRAPH_CASES, "kernel_table"} == set(_RULES)


@pytest.mark.parametrize(("key", "value", "others", "acts"), FLAT)
def test_told_if_and_only_if_it_does_nothing(
    tiny: JobSetup, key: str, value: Any, others: dict[str, Any], acts: bool
) -> None:
    setup = tiny.with_values({"global_batch": 256, **{k: v for k, v in others.items() if k != key}})
    without, with_it = run_point(setup), run_point(setup.with_values({key: value}))
    assert told(with_it, key) is not acts
    assert same(without, with_it) is not acts
    assert not told(without, key)


@pytest.mark.parametrize(("key", "value", "others", "acts"), GRAPH_FLAT)
def test_told_of_graphs_too(key: str, value: Any, others: dict[str, Any], acts: bool, tmp_path: Path) -> None:
    table = tmp_path / "net.csv"
    rows = (f"{k},1e9,1e6,{k - 1 if k else ''},1e6,{k % 2}" for k in range(4))
    table.write_text("\n".join(["op,flops,out_bytes,after,parameters,device", *rows]))
    given = {"graph": str(table), "graph.batch": 4, **others}
    setup = JobSetup.of("net", topology="dgx1-v100", **given)
    without, with_it = run_point(setup), run_point(setup.with_values({key: value}))
    assert told(with_it, key) is not acts
    assert same(without, with_it) is not acts


@pytest.mark.parametrize(("device", "acts"), [("h100-sxm", True), ("a100-sxm-80gb", False)])
def test_told_of_a_table_of_kernels_that_holds_none(tiny: JobSetup, device: str, acts: bool, tmp_path: Path) -> None:
    norm = tmp_path / "mine.csv"  # of 2,048 tokens of 768 columns, two numbers each way of two bytes
    norm.write_text(f"device,kind,dtype,form,nbytes,time_us\n{device},memory,bf16,norm,{2 * 2 * 128 * 768},77\n")
    without, with_it = run_point(tiny), run_point(tiny.with_values({"kernel_table": str(norm)}))
    assert told(with_it, "kernel_table") is not acts
    assert same(without, with_it) is not acts


def test_a_fabric_that_no_group_crosses(tiny: JobSetup) -> None:
    """Two nodes with a replica each would reduce over it; two jobs' worth of ranks that never meet do not."""
    point = prepare(tiny.with_values({"nodes": 2, "fabric.oversubscription": 2.0, "global_batch": 256}))
    apart = tuple(
        replace(family, members=family.members.reshape(2, 8)) for family in point.job.families if family.name == "dp"
    )
    result = run_point(replace(point, job=replace(point.job, families=apart)))
    assert "fabric.oversubscription: no effect: no process group spans two nodes" in result.warnings


def test_what_a_list_has_in_vain_is_told(tiny: JobSetup) -> None:
    given = {"plan.launch": "layers", "plan.cuda_graphs": ("attn", "moe_router", "attn", "mlp")}
    told = [
        warning for warning in run_point(tiny.with_values(given)).warnings if warning.startswith("plan.cuda_graphs")
    ]
    assert told == [
        "plan.cuda_graphs: attn is there 2 times: no effect beyond the first",
        "plan.cuda_graphs: moe_router: no effect: the job has none",
    ]


def test_it_is_told_once(tiny: JobSetup) -> None:
    """The fabric knows that no traffic leaves its leaf, the run that its routes are the same."""
    result = run_point(tiny.with_values(TWO_NODES | {"global_batch": 256, "fabric.oversubscription": 2.0}))
    assert len([note for note in result.warnings if note.startswith("fabric.oversubscription")]) == 1


def test_a_default_that_is_stated_is_not_told(tiny: JobSetup) -> None:
    result = run_point(tiny.with_values({"fabric.ecmp": "ideal", "seed": 0, "plan.overlap_dp": True}))
    assert result.warnings == run_point(tiny).warnings


@pytest.mark.parametrize(
    ("key", "value", "others", "least"),
    [
        ("plan.offload.cache", 50, MANY, "as good as "),
        ("plan.checkpoint.chunk_bytes", 10**12, ALONE, "B is as good as "),
    ],
)
def test_more_than_there_is_is_told_with_what_would_do(
    tiny: JobSetup, key: str, value: int, others: dict[str, Any], least: str
) -> None:
    setup = tiny.with_values({"global_batch": 256, **others})
    more = run_point(setup.with_values({key: value}))
    (note,) = [warning for warning in more.warnings if warning.startswith(key)]
    enough = int(note.partition(least)[2].split(" ")[0].rstrip(":"))
    for given, is_same in ((enough, True), (enough - 1, False)):
        other = run_point(setup.with_values({key: given}))
        assert same(more, other) is is_same
        assert not any(warning.startswith(key) for warning in other.warnings)
