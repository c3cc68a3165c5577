"""MLP-Offload: where subgroups are, what the cache keeps, and each of the four ideas by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import clustersim as cs
from clustersim.faults import BadInput
from clustersim.topology.drive_rates import DriveRates
from clustersim.workload.offload import MlpOffload
from clustersim.workload.offload.subgroup import Subgroup
from clustersim.workload.op import Storage

MODEL, NODE = "llama-3.2-1b", "jlse-h100"
PARAMETERS = cs.load_model(MODEL).num_parameters
DRIVE = DriveRates(read=6.9e9, write=5.3e9, half_duplex=True)
POLICY = MlpOffload(subgroup_size=20_000_000, ratio=3, cache=2)


def those(count: int) -> list[Subgroup]:
    return [Subgroup(index=n, count=count, axis="dp", chunk=0, parts=((n, 100),)) for n in range(count)]


def tiers(policy: MlpOffload, count: int) -> list[str]:
    return [policy.place(subgroup).states for subgroup in those(count)]


def run(policy: MlpOffload, steps: int = 4, **changes: Any) -> cs.Result:
    plan = cs.ParallelPlan(zero=3, dp=4, recompute="full", gradient_dtype="bf16", offload=policy)
    job = cs.training_step(
        cs.load_model(MODEL), plan, global_batch=4, micro_batch=1, seq_len=1024, num_devices=4, **changes
    )
    return cs.simulate(cs.load_topology(NODE), job, steps=steps)


def step_time(policy: MlpOffload) -> float:
    return float(cs.summary(run(policy))["step_time_s"])


def test_every_third_is_on_the_file_system() -> None:
    assert tiers(POLICY, 7) == ["file_system", "nvme", "nvme"] * 2 + ["file_system"]
    assert tiers(replace(POLICY, tiers=("nvme",)), 3) == ["nvme"] * 3


@given(st.integers(1, 100), st.integers(1, 100), st.integers(1, 300))
def test_shares_are_kept_to_within_one(first: int, second: int, count: int) -> None:
    found = tiers(MlpOffload(shares=(first, second)), count)
    for so_far in range(1, count + 1):
        on_second = found[:so_far].count("file_system")
        assert abs(on_second - so_far * second / (first + second)) < 1


def test_shares_follow_the_lower_rate_of_each_tier() -> None:
    fitted = MlpOffload().on_drives(
        {"nvme": DRIVE, "file_system": DriveRates(read=3.6e9, write=13.7e9, half_duplex=False)}
    )
    assert fitted.shares == (5300, 3600)
    assert POLICY.on_drives({"nvme": DRIVE, "file_system": DRIVE}) == POLICY


@pytest.mark.parametrize(
    ("settings", "rates", "keys", "nearest"),
    [
        ({}, {"nvme": DRIVE}, ["tiers"], "nvme"),
        ({"ratio": 3}, {"nvme": DRIVE}, ["tiers"], "nvme"),
        ({"tiers": ("nvme",)}, {}, ["tiers"], None),
        ({"cache": -1}, {"nvme": DRIVE}, ["tiers", "cache"], "nvme"),
    ],
)
def test_tiers_that_nodes_have_not_are_named(
    settings: dict[str, Any], rates: dict[str, DriveRates], keys: Sequence[str], nearest: str | None
) -> None:
    with pytest.raises(BadInput, match="nodes of this cluster do not have") as error:
        MlpOffload(**settings).on_drives(rates)
    assert [fault.key for fault in error.value.faults] == [f"plan.offload.{key}" for key in keys]
    assert error.value.faults[0].nearest == nearest


@given(st.integers(1, 40), st.integers(0, 12), st.sampled_from([2, 3, 5]))
def test_the_cache_holds_what_the_next_step_begins_with(count: int, cache: int, ratio: int) -> None:
    policy = MlpOffload(ratio=ratio, cache=cache)
    for step in (0, 1):
        kept, order = policy.kept(those(count), step), list(policy.order(those(count), step))
        following = list(policy.order(those(count), 1 - step))
        for tier in policy.tiers:
            mine = [n for n in order if policy.place(those(count)[n]).states == tier]
            assert set(mine[len(mine) - min(cache, len(mine)) :]) == kept & set(mine)
            again = [n for n in following if n in mine]
            assert set(again[: len(kept & set(mine))]) == kept & set(mine)


def test_one_order_keeps_nothing() -> None:
    policy = replace(POLICY, reverses=False)
    assert policy.kept(those(9), 0) == policy.kept(those(9), 1) == frozenset()
    assert list(policy.order(those(9), 1)) == list(range(9))


def accesses(result: cs.Result) -> dict[str, int]:
    trace = result.trace[(result.trace["step"] == 2) & (result.trace["category"] == "storage")]
    found: dict[str, int] = trace.groupby("kind", observed=True)["nbytes"].sum().to_dict()
    return found


def test_bytes_of_a_step() -> None:
    """12 a parameter each way, without what the cache holds; gradients stay on the host."""
    none, some = (accesses(run(replace(POLICY, cache=n))) for n in (0, 2))
    assert sum(none.values()) == pytest.approx(24 * PARAMETERS, rel=1e-6)
    assert none["nvme_read"] == none["nvme_write"]
    assert none["fs_read"] == none["fs_write"]
    assert 0 < none["fs_read"] < none["nvme_read"]
    assert all(some[kind] < none[kind] for kind in none)


def test_the_step_is_as_long_as_its_slower_tier_needs() -> None:
    found = accesses(run(POLICY))
    nvme = found["nvme_read"] / 6.9e9 + found["nvme_write"] / 5.3e9
    servers = max(found["fs_read"], found["fs_write"]) / 3.6e9
    assert max(nvme, servers) < step_time(POLICY) < 1.25 * max(nvme, servers)


@pytest.mark.parametrize(
    "without",
    [
        {"tiers": ("nvme",), "ratio": None},
        {"reverses": False},
        {"gradients_on_host": False, "cast": "gpu", "blocking": True},
    ],
    ids=["one path", "one order", "gradients on drives"],
)
def test_each_idea_shortens_the_step(without: dict[str, Any]) -> None:
    assert step_time(POLICY) < 0.97 * step_time(replace(POLICY, **without))


def test_the_lock_costs_little_and_lets_one_rank_read_at_a_time() -> None:
    locked, free = run(POLICY), run(replace(POLICY, lock=False))
    times = [cs.summary(result)["step_time_s"] for result in (locked, free)]
    assert times[0] == pytest.approx(times[1], rel=0.05)

    def at_once(result: cs.Result) -> int:
        trace = result.trace_of(range(4))
        reads = trace[(trace["kind"] == "nvme_read") & (trace["step"] == 2)].sort_values("start_ns")
        starts, ends = reads["start_ns"].to_numpy(), reads["end_ns"].to_numpy()
        return max(int(((starts <= instant) & (ends > instant)).sum()) for instant in starts)

    assert at_once(locked) == 1
    assert at_once(free) == 4


def test_folding_is_exact() -> None:
    policy = replace(POLICY, subgroup_size=100_000_000)
    plan = cs.ParallelPlan(zero=3, dp=4, recompute="full", offload=policy)
    job = cs.training_step(cs.load_model(MODEL), plan, global_batch=4, micro_batch=1, seq_len=512, num_devices=4)
    full, folded = (
        cs.simulate(cs.load_topology(NODE), job, steps=4, fold=fold).trace_of(range(4)) for fold in (False, True)
    )
    assert (full["end_ns"].to_numpy() == folded["end_ns"].to_numpy()).all()


def test_memory() -> None:
    """States on drives, 16-bit gradients, cache and buffers of both paths on the host."""
    plan = cs.ParallelPlan(zero=3, dp=4, recompute="full", gradient_dtype="bf16", offload=POLICY)
    job = cs.training_step(cs.load_model(MODEL), plan, global_batch=4, micro_batch=1, seq_len=1024, num_devices=4)
    held = job.programs[0].resident
    rank = PARAMETERS / 4
    assert held["nvme/optimizer"] + held["file_system/optimizer"] == pytest.approx(12 * rank)
    assert held["host_pinned/flat buffer"] == pytest.approx(2 * rank)
    assert "host_pinned/gradients" not in held
    assert held["host_pinned/buffers"] % (2 * 3 * 12) == 0
    assert 0 < held["host_pinned/cache"] <= 4 * held["host_pinned/buffers"] / 6


def test_the_file_system_is_free_of_gradients() -> None:
    result = run(POLICY, steps=2)
    names = set(result.trace[result.trace["category"] == "storage"]["name"].astype(str))
    assert names == {"read optimizer state", "write optimizer state"}


@pytest.mark.parametrize(
    ("settings", "keys"),
    [
        ({"tiers": ()}, ["tiers"]),
        ({"tiers": ("nvme", "nvme")}, ["tiers"]),
        ({"tiers": ("tape",)}, ["tiers"]),
        ({"ratio": 1}, ["ratio"]),
        ({"shares": (1, 2, 3)}, ["shares"]),
        ({"shares": (0, 1)}, ["shares"]),
        ({"shares": (1, 1), "ratio": 2}, ["shares"]),
        ({"cache": -1, "buffers": 0}, ["buffers", "cache"]),
        ({"gradients_on_host": False}, ["gradients_on_host"]),
    ],
)
def test_what_is_refused(settings: dict[str, Any], keys: Sequence[str]) -> None:
    policy = replace(MlpOffload(ratio=3) if "shares" not in settings else MlpOffload(), **settings)
    assert [fault.key for fault in policy.faults()] == [f"plan.offload.{key}" for key in keys]


def test_shares_that_are_not_known_are_refused_before_the_run() -> None:
    with pytest.raises(BadInput, match=r"plan\.offload\.shares"):
        run(MlpOffload())


def test_reads_of_both_tiers_go_on_beside_each_other() -> None:
    trace = run(POLICY, steps=2).trace
    trace = trace[(trace["step"] == 1) & (trace["rank"] == 0)]
    spans = {kind: trace[trace["kind"] == kind] for kind in ("nvme_read", "fs_read")}
    begins = max(span["start_ns"].min() for span in spans.values())
    assert begins < min(span["end_ns"].max() for span in spans.values())


def test_gradients_are_cast_right_before_their_update() -> None:
    trace = run(POLICY, steps=2).trace
    mine = trace[(trace["step"] == 1) & (trace["rank"] == 0) & (trace["stream"] == "cpu")].sort_values("start_ns")
    names = [name for name in mine["name"].astype(str) if name in ("cast gradients", "scale gradients", "cpu adam")]
    assert names == ["cast gradients", "scale gradients", "cpu adam"] * (len(names) // 3)


def test_ops_are_accesses_of_whole_subgroups() -> None:
    arrays = (
        cs.training_step(
            cs.load_model(MODEL),
            cs.ParallelPlan(zero=3, dp=4, offload=POLICY),
            global_batch=4,
            micro_batch=1,
            seq_len=1024,
            num_devices=4,
        )
        .programs[0]
        .arrays()
    )
    reads = [op.nbytes for op in arrays.ops if isinstance(op, Storage) and op.kind.endswith("_read")]
    assert min(sorted(reads)[1:]) >= 12 * 20_000_000
