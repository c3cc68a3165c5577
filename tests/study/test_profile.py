"""Every shipped profile loads, sets switches only, and says where each is from."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from clustersim.analysis.summary import summary
from clustersim.faults import BadInput
from clustersim.library.card import library_folder, list_cards, read_card
from clustersim.library.job import JobSetup, load_job
from clustersim.study.point import run_point
from clustersim.study.profile import Profile, load_profile
from clustersim.study.run_folder import write_run
from clustersim.study.steps.software import _BY_YEAR, _COMPILED, _FRAMEWORKS, _SOURCES
from clustersim.workload.plan import ParallelPlan

NAMES = [name for name, _ in list_cards()["profile"]]


@pytest.mark.parametrize("name", NAMES)
def test_shipped_cards(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    assert profile.description
    given = set(read_card("profile", name).data) - {"name", "description", "sources"}
    assert given == set(profile.sources)
    assert all(text.startswith(("code: ", "docs: ", "paper: ", "assumed")) for text in profile.sources.values())


def test_a_profile_has_no_efficiency() -> None:
    assert not [field.name for field in fields(Profile) if "float" in str(field.type)]


def test_every_named_profile_is_shipped() -> None:
    by_words = {name for _, name in (*_SOURCES, *_FRAMEWORKS)} - set(_BY_YEAR)
    by_year = {name for years in _BY_YEAR.values() for _, name in years}
    assert by_words | by_year | set(_COMPILED.values()) <= set(NAMES)


def test_unknown_names_have_a_nearest() -> None:
    with pytest.raises(BadInput) as error:
        load_profile("megatron-2000")
    assert error.value.faults[0].nearest in NAMES


def switches(name: str, replicas: int = 8, kernels: tuple[str, ...] = ("flash-2",), **job: Any) -> dict[str, Any]:
    return load_profile(name).switches(job, replicas=replicas, kernels=kernels)


@pytest.mark.parametrize(
    ("dtype", "gradients"), [("bf16", "bf16"), ("fp16", "fp16"), ("fp8", "bf16"), ("fp32", "fp32")]
)
def test_gradients_in_16_bits_have_the_jobs_format(dtype: str, gradients: str) -> None:
    profile = load_profile("deepspeed-huggingface-2024")
    assert profile.gradient_dtype == "bf16"
    assert profile.switches({}, replicas=8, kernels=(), dtype=dtype)["gradient_dtype"] == gradients


def test_a_run_in_fp16_takes_a_profile_whose_users_had_bf16(tiny: JobSetup) -> None:
    run = run_point(tiny.with_values({"profile": "deepspeed-huggingface-2024", "dtype": "fp16"}))
    assert summary(run)["plan"]["gradient_dtype"] == "fp16"


def test_what_no_job_could_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (library_folder() / "workloads/profiles/megatron-core-2024.toml").read_text()
    head, sources = text.replace('fusion = ["norm",', 'fusion = ["nrm",').split("[sources]")
    head = head.replace("zero = 1", "zero = 9")
    added = {"logged_losses": "99", "fp8": '"fp9"', "recompute_modules": '["cor"]', "repeats": '["cor"]'}
    lines = [f"{name} = {value}" for name, value in added.items()]
    path.write_text("\n".join([head, *lines, "[sources]", sources, *(f'{name} = "assumed"' for name in added)]))
    with pytest.raises(BadInput) as caught:
        load_profile(str(path))
    assert {fault.key: fault.nearest for fault in caught.value.faults}.items() >= {
        "zero": 3,
        "logged_losses": 16,
        "fp8": "fp8",
    }.items()
    assert {fault.key for fault in caught.value.faults} == {"zero", "fusion", *added}


def test_switches_are_fields_of_a_plan() -> None:
    known = {field.name for field in fields(ParallelPlan)}
    for name in NAMES:
        job = {"tp": 2, "pp": 2, "cp": 2, "ep": 2, "recompute": "selective"}
        assert switches(name).keys() | switches(name, **job).keys() <= known


def test_only_what_acts_is_taken() -> None:
    alone = switches("megatron-core-2024", replicas=1)
    assert not {"zero", "overlap_dp", "overlap_tp", "sequence_parallel", "tp_overlap", "context"} & alone.keys()
    assert alone["wait_messages"] is False
    deep = switches("megatron-core-2024", tp=2, pp=4)
    assert (deep["wait_messages"], deep["sequence_parallel"], deep["zero"]) == (True, True, 1)
    assert switches("megatron-core-2024", pp=4, vpp=2)["wait_messages"] is False
    assert switches("megatron-core-2024", pp=4, schedule="zb-h1")["wait_messages"] is False
    assert "tp_overlap" not in switches("megatron-core-2024", tp=2, sequence_parallel=False)


def test_sharding_is_taken_whole_or_not_at_all() -> None:
    assert switches("fsdp2-2024")["fsdp"] is True
    assert switches("fsdp2-2024")["per_parameter"] is True
    told = switches("fsdp2-2024", zero=1)
    assert not {"zero", "fsdp", "per_parameter"} & told.keys()
    assert switches("deepspeed-zero3-2022")["zero"] == 3
    assert switches("deepspeed-zero3-2022", pp=2)["zero"] == 1
    assert switches("llama-3-2024", pp=2)["zero"] == 2


def test_below_stage_3_deepspeed_sums_whole_gradients_between_kernels() -> None:
    found = switches("deepspeed-huggingface-2024", zero=2)
    assert (found["reduce_scatter"], found["overlap_dp"], found["gradient_dtype"]) == (False, False, "bf16")
    assert not {"reduce_scatter", "overlap_dp"} & switches("deepspeed-huggingface-2024").keys()
    assert switches("megatron-core-2024")["reduce_scatter"] is True


@pytest.mark.parametrize(("job", "replicas", "hooked"), [({}, 8, True), ({"zero": 2}, 8, None), ({}, 1, None)])
def test_hooks_go_with_weights_that_are_split(job: dict[str, Any], replicas: int, hooked: bool | None) -> None:
    for name in ("deepspeed-huggingface-2024", "deepspeed-zero3-2022"):
        assert switches(name, replicas=replicas, **job).get("module_hooks") is hooked


def test_an_attention_kernel_that_the_device_has_not_is_its_usual_one() -> None:
    assert switches("torchtitan-2024")["attention"] == "flash-2"
    assert switches("torchtitan-2024", kernels=("trtllm",))["attention"] == "flash"
    assert switches("megatron-2021", kernels=())["attention"] == "unfused"


def test_a_split_vocabulary_has_its_own_loss() -> None:
    assert switches("torchtitan-2024")["loss"] == "operators"
    assert switches("torchtitan-2024", tp=2)["loss"] == "parallel"


JOBS: list[dict[str, Any]] = [
    {},
    {"plan.tp": 2, "plan.pp": 2, "plan.recompute": "selective"},
    {"plan.fsdp": True, "plan.optimizer": "lion"},
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("others", JOBS)
def test_a_job_of_every_profile_runs(tiny: JobSetup, name: str, others: dict[str, Any]) -> None:
    setup = tiny.with_values({"global_batch": 32, "profile": name, **others})
    result = run_point(setup)
    assert not [warning for warning in result.warnings if "no effect" in warning]
    assert result.inputs["settings"]["profile"] == name
    assert f"profile/{name}" in result.inputs["cards"]
    plan = summary(result)["plan"]
    assert plan["launch"] == load_profile(name).launch


def test_what_a_job_sets_goes_first(tiny: JobSetup) -> None:
    setup = tiny.with_values({"profile": "megatron-core-2024", "plan.zero": 0, "plan.launch": "eager"})
    plan = summary(run_point(setup))["plan"]
    assert (plan["zero"], plan["launch"], plan["wait_norm"]) == (0, "eager", True)


def test_an_unknown_profile_is_a_fault_of_the_job(tiny: JobSetup) -> None:
    with pytest.raises(BadInput) as error:
        run_point(tiny.with_values({"profile": "megatron-core-2026"}))
    (fault,) = error.value.faults
    assert (fault.key, fault.nearest) == ("profile", "megatron-core-2025")


def test_a_run_is_repeated_from_its_folder(tiny: JobSetup, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    card = read_card("profile", "pytorch-eager-2024")
    mine.write_text(card.path.read_text().replace('launch = "eager"', 'launch = "modules"'))
    setup = tiny.with_values({"profile": str(mine)})
    result = run_point(setup)
    write_run(result, setup, tmp_path / "run")
    mine.unlink()
    again = run_point(load_job(tmp_path / "run"))
    assert summary(again)["step_time_s"] == summary(result)["step_time_s"]
    assert summary(again)["plan"]["launch"] == "modules"
