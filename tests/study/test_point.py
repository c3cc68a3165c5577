"""Settings into a cluster and a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import clustersim as cs
from clustersim.faults import BadInput, Fault
from clustersim.library.job import JobSetup
from clustersim.study import point as module
from clustersim.study import run_length
from clustersim.study.point import prepare, run_point


def keys(error: pytest.ExceptionInfo[BadInput]) -> list[str]:
    return [fault.key for fault in error.value.faults]


def without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def test_a_point_is_what_a_script_would_have_built(tiny: JobSetup) -> None:
    run = run_point(tiny.with_values({"plan.tp": 2, "plan.zero": 1, "steps": 2}))
    cluster = cs.load_topology("dgx-h100")
    plan = cs.ParallelPlan(tp=2, dp=4, zero=1)
    step = cs.training_step(cs.load_model("gpt2"), plan, global_batch=16, micro_batch=1, seq_len=128)
    script = cs.simulate(cluster, step, steps=2)
    ignored = {"wall_s", "job"}
    mine, its = cs.summary(run), cs.summary(script)
    assert {k: v for k, v in mine.items() if k not in ignored} == {k: v for k, v in its.items() if k not in ignored}
    assert mine["job"] == "tiny"


def test_every_setting_reaches_the_run(tiny: JobSetup) -> None:
    settings: dict[str, Any] = {
        "nodes": 2,
        "fabric": "fat_tree",
        "fabric.oversubscription": 2.0,
        "fabric.radix": 32,
        "nics_per_node": 4,
        "dtype": "fp16",
        "plan.axis_order": ("dp", "tp", "cp", "pp"),
        "plan.tp": 2,
        "perturb.slow_ranks": {3: 1.5},
        "perturb.slow_links": {"node0/nic0.tx": 0.5},
        "overlap.sm": 0.5,
        "algorithms.all_reduce": "tree/LL",
        "limits.num_events": 10**6,
        "seed": 5,
        "steps": 2,
    }
    point = prepare(tiny.with_values(settings))
    assert point.topology.num_nodes == 2
    assert point.job.plan["axis_order"] == ["dp", "tp", "cp", "pp"]
    assert point.job.ledger.dtype == "fp16"
    assert point.arguments == {
        "steps": 2,
        "seed": 5,
        "perturb": {"slow_ranks": {3: 1.5}, "slow_links": {"node0/nic0.tx": 0.5}},
        "overlap": {"sm": 0.5},
        "algorithms": {"all_reduce": "tree/LL"},
        "limits": {"num_events": 10**6},
    }
    assert {b.kind for b in point.topology.resources.blocks} >= {"leaf_up"}


def test_every_field_of_the_plan_is_a_setting() -> None:
    from dataclasses import fields

    from clustersim.library.keys import KEYS

    plan = {f"plan.{field.name}": field.default for field in fields(cs.ParallelPlan)}
    mine = {key: KEYS[key].default for key in KEYS if key.startswith("plan.") and key.count(".") == 1}
    tables = {key.rpartition(".")[0]: None for key in KEYS if key.startswith("plan.") and key.count(".") == 2}
    assert mine | tables == plan


def test_faults_of_all_parts_come_together(tiny: JobSetup) -> None:
    setup = tiny.with_values({"plan.tp": 5, "nics_per_node": 3, "perturb.slow_ranks": {0: 2.0}})
    refused = [Fault(key="seq_len", value="nan", rule="must be a number")]
    with pytest.raises(BadInput) as error:
        prepare(setup, refused)
    assert keys(error)[:2] == ["seq_len", "nics_per_node"]
    assert set(keys(error)[2:]) == {"plan.tp"}


def test_nothing_is_built_before_all_is_checked(tiny: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*args: object, **kwargs: object) -> None:
        raise AssertionError("built")

    monkeypatch.setattr(module, "training_step", build)
    for bad in ({"plan.dp": 3}, {"global_batch": 2**24, "steps": 100}, {"perturb.slow_ranks": {8: 2.0}}):
        with pytest.raises(BadInput):
            prepare(tiny.with_values(bad))


def test_the_most_ops_is_a_batch_that_is_built(tiny: JobSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_length, "MOST_OPS", 1000)
    with pytest.raises(BadInput) as error:
        prepare(tiny.with_values({"global_batch": 800}))
    nearest = error.value.faults[0].nearest
    assert isinstance(nearest, int)
    prepare(tiny.with_values({"global_batch": nearest}))


def test_the_estimate_of_ops_is_near(tiny: JobSetup) -> None:
    """Of plans of each kind none has many more, and none less than a third."""
    plans = (
        {},
        {"plan.tp": 2},
        {"plan.pp": 2},
        {"plan.tp": 4, "plan.recompute": "full", "plan.sequence_parallel": False},
    )
    for plan in plans:
        point = prepare(tiny.with_values({"global_batch": 128, **plan}))
        num_ops = sum(len(program.arrays()) for program in point.job.programs)
        micro_batches = 128 // point.job.plan["dp"]
        assert 0.33 < num_ops / (micro_batches * 12 * run_length._OPS_PER_LAYER) < 1.25


def test_nodes_are_what_a_fault_of_devices_is_about(tiny: JobSetup) -> None:
    with pytest.raises(BadInput) as error:
        prepare(tiny.with_values({"nodes": 2, "plan.dp": 16, "plan.pp": 2, "plan.tp": 1}))
    assert (error.value.faults[0].key, error.value.faults[0].nearest) == ("plan.dp", 8)
    with pytest.raises(BadInput) as error:
        prepare(tiny.with_values({"nodes": 2, "plan.dp": 3, "plan.pp": 3}))
    assert (error.value.faults[0].key, error.value.faults[0].value) == ("nodes", 2)


@pytest.mark.parametrize(
    ("values", "nearest"),
    [
        ({"nodes": 1, "plan.tp": 8, "plan.pp": 2}, 2),
        ({"nodes": 5, "plan.tp": 4, "plan.pp": 4, "plan.dp": 3}, 6),
        ({"nodes": 2, "plan.pp": 3}, 3),
        ({"nodes": 2, "plan.dp": 3, "plan.pp": 3}, 3),  # 9 GPUs fill no nodes
        ({"topology": "gb200-nvl72", "nodes": 1, "plan.tp": 16, "plan.dp": 7}, 2),
    ],
)
def test_the_nearest_nodes_are_filled_by_replicas(tiny: JobSetup, values: dict[str, Any], nearest: int) -> None:
    setup = tiny.with_values({"model": "llama-2-7b", "global_batch": 144, "seq_len": 256} | values)
    with pytest.raises(BadInput) as error:
        prepare(setup)
    (fault,) = (fault for fault in error.value.faults if fault.key == "nodes")
    assert fault.nearest == nearest
    prepare(replace(setup, values=without(setup.values, "plan.dp") | {"nodes": nearest}))


def test_notes_of_a_reader_are_warnings_of_the_run(tiny: JobSetup) -> None:
    result = run_point(tiny.with_values({"model": "llama-2-7b", "nodes": 1, "plan.tp": 8, "plan.pp": 1}))
    assert result.inputs["settings"]["plan.dp"] == 1
    assert result.inputs["cards"].keys() >= {"model/llama-2-7b", "topology/dgx-h100", "gpu/h100-sxm", "nic/connectx-7"}


def test_a_schedule_that_is_no_name_is_told_once(tiny: JobSetup) -> None:
    setup = tiny.with_values({"plan.schedule": "{a: 1}"})
    refused = Fault(key="plan.schedule", value="{a: 1}", rule="is no schedule")
    for faults in ((), (refused,)):
        with pytest.raises(BadInput) as error:
            prepare(setup, faults)
        assert [fault.key for fault in error.value.faults] == ["plan.schedule"]


@pytest.mark.parametrize(
    ("values", "key", "nearest"),
    [
        ({"topology": "dgx1-v100"}, "dtype", "fp16"),
        ({"topology": "dgx-a100", "dtype": "nvfp4"}, "dtype", "bf16"),
        ({"topology": "dgx1-v100", "dtype": "fp16", "plan.attention": "trtllm"}, "plan.attention", "flash"),
        ({"topology": "dgx-h100", "dtype": "fp8", "plan.attention": "cudnn-fp8"}, "plan.attention", "flash"),
    ],
)
def test_what_gpus_cannot_compute_is_told_by_its_setting(
    tiny: JobSetup, values: dict[str, Any], key: str, nearest: str
) -> None:
    setup = tiny.with_values(values)
    with pytest.raises(BadInput, match="cannot run on") as error:
        prepare(setup)
    (fault,) = error.value.faults
    assert (fault.key, fault.value, fault.nearest) == (key, setup.value(key), nearest)
    prepare(setup.with_values({key: nearest}))


def test_what_gpus_cannot_multiply_for_a_module_is_told_by_its_setting(tiny: JobSetup) -> None:
    setup = tiny.with_values({"dtype": "fp8", "plan.module_dtypes": ["mlp:fp8_current", "attention:mxfp8"]})
    with pytest.raises(BadInput, match="cannot run on") as error:
        prepare(setup)
    (fault,) = error.value.faults
    assert (fault.key, fault.value, fault.nearest) == ("plan.module_dtypes", "attention:mxfp8", "attention:bf16")
    prepare(setup.with_values({"plan.module_dtypes": ["mlp:fp8_current", "attention:bf16"]}))


@pytest.mark.parametrize(
    ("values", "key", "value", "nearest"),
    [
        ({"plan.checkpoint.policy": "lazy", "plan.checkpoint.tier": "nvme"}, "plan.checkpoint.tier", "nvme", "host"),
        ({"plan.checkpoint.policy": "lazy"}, "plan.checkpoint.tier", "file_system", "host"),
        (
            {"plan.checkpoint.policy": "lazy", "topology": "dgx-h100"},
            "plan.checkpoint.tier",
            "file_system",
            "nvme",
        ),
        (
            {"plan.offload.policy": "zero-infinity", "plan.zero": 3},
            "plan.offload.policy",
            "zero-infinity",
            "zero-offload",
        ),
    ],
)
def test_drives_that_a_cluster_lacks_are_told_by_their_setting(
    tiny: JobSetup, values: dict[str, Any], key: str, value: str, nearest: str
) -> None:
    with pytest.raises(BadInput, match="is no tier of") as error:
        prepare(tiny.with_values({"topology": "hgx-mi300x", **values}))
    (fault,) = error.value.faults
    assert (fault.key, fault.value, fault.nearest) == (key, value, nearest)


def test_a_profile_that_does_not_go_with_the_job_is_named(tiny: JobSetup) -> None:
    given = {"model": "gpt-oss-20b", "profile": "deepspeed-zero3-2022", "topology": "dgx-h100", "global_batch": 64}
    with pytest.raises(BadInput, match=r"plan\.dropout: .* \(profile deepspeed-zero3-2022 sets it\); nearest: False"):
        prepare(tiny.with_values(given))
