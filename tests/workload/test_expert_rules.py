"""What a plan may ask of experts, and what is said of settings that do nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.resolve import resolve
from clustersim.workload.shape.experts import Experts


@pytest.fixture(scope="module")
def moe(llama: Model) -> Model:
    """Twelve experts, two a token, and a shared one."""
    experts = Experts(num_experts=12, top_k=2, ffn_hidden=96, num_shared=1, shared_ffn_hidden=100)
    return replace(llama, name="moe-test", num_layers=4, ffn_hidden=0, vocab=1024, experts=experts)


def case(model: Model, *, dtype: str = "bf16", num_devices: int = 16, **plan: Any) -> Case:
    return Case(
        model=model,
        plan=ParallelPlan(**plan),
        global_batch=32,
        micro_batch=1,
        seq_len=128,
        dtype=dtype,
        num_devices=num_devices,
    )


@pytest.mark.parametrize(
    ("plan", "key", "nearest"),
    [
        ({"ep": 5}, "plan.ep", 4),
        ({"ep": 3}, "plan.ep", 2),  # 3 divides the experts, but not the 16 ranks
        ({"ep": 4, "pp": 2, "etp": 4}, "plan.ep", 2),
        ({"etp": 5, "num_devices": 10}, "plan.etp", 2),  # 4 divides the width, but not the 10 ranks
        ({"etp": 16, "num_devices": 4}, "plan.etp", 4),
        ({"ep": 2, "tp": 8}, "plan.tp", 5),  # the shared experts are 100 wide
        ({"ep": 2, "tp": 2, "sequence_parallel": False}, "plan.sequence_parallel", True),
        ({"dropout": True}, "plan.dropout", False),
        ({"ep": 4, "overlap_dispatch": 1000}, "plan.overlap_dispatch", 128),
        ({"ep": 4, "fp8_dispatch": True}, "plan.fp8_dispatch", False),
        ({"fp8_activation_input": True}, "plan.fp8_activation_input", False),
        ({"ep": 4, "dispatch": "deepep", "token_imbalance": "zipf:1"}, "plan.dispatch", "all_to_all"),
        ({"ep": 4, "dispatch": "deep_ep"}, "plan.dispatch", "deepep"),
        ({"ep": 4, "token_imbalance": "zipf:x"}, "plan.token_imbalance", "zipf:1"),
        ({"capacity_factor": 0}, "plan.capacity_factor", 1.0),
        ({"overlap_dispatch": 0}, "plan.overlap_dispatch", 1),
        ({"etp": 0}, "plan.etp", 1),
        ({"overlap_shared": 1}, "plan.overlap_shared", True),
        ({"ep": 2, "pp": 2, "tp": 2, "axis_order": ("tp", "pp", "dp", "cp")}, "plan.axis_order", None),
        ({"ep": 2, "fsdp": True, "hsdp": 16, "etp": 1, "pp": 1, "sync_every": 10}, "plan.sync_every", None),
    ],
    ids=str,
)
def test_faults_name_the_key_and_the_nearest_legal_value(
    moe: Model, plan: dict[str, Any], key: str, nearest: object
) -> None:
    with pytest.raises(BadInput) as error:
        resolve(case(moe, **plan))
    found = {fault.key: fault for fault in error.value.faults}
    assert key in found
    if nearest is not None:
        assert found[key].nearest == nearest


def test_a_model_without_experts_has_none_to_spread(llama: Model) -> None:
    with pytest.raises(BadInput, match=r"plan\.ep: 2 must be 1: llama-test has no experts"):
        resolve(case(llama, ep=2))
    notes = resolve(case(llama, dispatch="deepep", token_seed=1)).notes
    assert [n for n in notes if "no experts" in n] == [
        "plan.token_seed: no effect: llama-test has no experts",
        "plan.dispatch: no effect: llama-test has no experts",
    ]


def test_settings_without_effect(moe: Model) -> None:
    notes = resolve(case(moe, overlap_shared=True, overlap_dispatch=2, dispatch="deepep", token_seed=1)).notes
    for name in ("overlap_shared", "overlap_dispatch", "dispatch", "token_seed"):
        assert any(note.startswith(f"plan.{name}: no effect") for note in notes), name
    assert not [n for n in resolve(case(moe, ep=4, overlap_shared=True, overlap_dispatch=2)).notes if "plan" in n]


def test_dropped_copies_are_told(moe: Model) -> None:
    notes = resolve(case(moe, ep=4, capacity_factor=0.75)).notes
    assert "plan.capacity_factor: 25.0% of the copies of tokens are dropped, and counted as model FLOP" in notes
    notes = resolve(case(moe, ep=4, capacity_factor=1.25)).notes
    assert "plan.capacity_factor: 20.0% of the rows of the experts are padding" in notes


def test_a_kernel_for_each_expert_of_none_or_one(llama: Model, moe: Model) -> None:
    assert moe.experts is not None
    alone = replace(moe, experts=replace(moe.experts, num_experts=16))
    for model, ep, told in ((llama, 1, True), (alone, 1, False), (alone, 8, False), (alone, 16, True)):
        notes = resolve(case(model, ep=ep, expert_kernels="each")).notes
        assert any(note.startswith("plan.expert_kernels: no effect") for note in notes) is told
