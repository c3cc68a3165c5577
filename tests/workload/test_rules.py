"""Every rule on a plan: what it refuses, in which words, and which value it offers instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import Fault
from clustersim.library.model import load_model
from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.rules import find_faults

BATCH: dict[str, Any] = {"global_batch": 64, "micro_batch": 2, "seq_len": 128, "dtype": "bf16"}


def faults(model: Model, plan: dict[str, Any], **batch: Any) -> tuple[Fault, ...]:
    return find_faults(Case(model=model, plan=ParallelPlan(**{"dp": 1} | plan), **(BATCH | batch)))


def test_an_image_keeps_its_tokens_where_ranks_do_not_divide_them() -> None:
    model = load_model("vit-b-16")
    plan, tokens = {"tp": 2}, {"seq_len": 197}
    (fault,) = faults(model, plan, **tokens)
    assert (fault.key, fault.nearest) == ("plan.sequence_parallel", False)
    assert faults(model, plan | {"sequence_parallel": False}, **tokens) == ()


def test_a_legal_plan_has_none(llama: Model) -> None:
    plan = {"tp": 4, "pp": 2, "dp": 4, "vpp": 2, "zero": 1, "recompute": "full", "axis_order": ("dp", "tp", "pp", "cp")}
    assert faults(llama, plan, num_devices=32) == ()


# (plan, batch) -> (key, nearest, words of the rule)
ONE_FAULT: list[tuple[dict[str, Any], dict[str, Any], str, Any, str]] = [
    ({"tp": 0}, {}, "plan.tp", 1, "whole number"),
    ({"pp": 1.5}, {}, "plan.pp", 2, "whole number"),
    ({"vpp": True}, {}, "plan.vpp", 1, "whole number"),
    ({"dp": -1}, {}, "plan.dp", 1, "whole number"),
    ({"bucket_bytes": 0}, {}, "plan.bucket_bytes", 1, "whole number"),
    ({}, {"micro_batch": "2"}, "micro_batch", 1, "whole number"),
    ({}, {"micro_batch": 0}, "micro_batch", 1, "whole number"),
    ({}, {"seq_len": -4}, "seq_len", 1, "whole number"),
    ({"dp": None}, {"num_devices": 0}, "num_devices", 1, "whole number"),
    ({"recompute": "selectiv"}, {}, "plan.recompute", "selective", "none, selective, full"),
    ({"attention": "flsh"}, {}, "plan.attention", "flash", "cudnn, cudnn-fp8, trtllm, unfused"),
    ({"schedule": "1f1"}, {}, "plan.schedule", "1f1b", "gpipe, 1f1b, interleaved"),
    ({"gradient_dtype": "fp23"}, {}, "plan.gradient_dtype", "fp32", "bf16, fp16, fp32"),
    ({}, {"dtype": "bf61"}, "dtype", "bf16", "bf16, bf16_pure, fp16, fp32"),
    ({}, {"dtype": None}, "dtype", "bf16", "bf16, bf16_pure, fp16, fp32"),
    ({"dropout": 1}, {}, "plan.dropout", True, "true or false"),
    ({"overlap_dp": None}, {}, "plan.overlap_dp", False, "true or false"),
    ({"sequence_parallel": "yes"}, {}, "plan.sequence_parallel", True, "true or false"),
    ({"axis_order": ("tp", "pp")}, {}, "plan.axis_order", ("tp", "cp", "dp", "pp"), "innermost first"),
    ({"zero": 7}, {}, "plan.zero", 3, "must be 0, 1, 2 or 3"),
    ({"zero": True}, {}, "plan.zero", 1, "must be 0, 1, 2 or 3"),
    ({"axis_order": None}, {}, "plan.axis_order", ("tp", "cp", "dp", "pp"), "innermost first"),
    ({"tp": 4, "sequence_parallel": True}, {"seq_len": 126}, "seq_len", 128, "multiple of tp 4"),
    ({"pp": 11}, {}, "plan.pp", 10, "pp 11 x vpp 1 = 11 stages must be at most the 8 layers"),
    ({"pp": 4, "vpp": 4}, {}, "plan.vpp", 2, "pp 4 x vpp 4 = 16 stages"),
    ({"vpp": 2}, {}, "plan.vpp", 1, "with one stage"),
    ({"pp": 2, "vpp": 2, "schedule": "1f1b"}, {}, "plan.schedule", "interleaved", "2 chunks a stage"),
    ({"pp": 2, "schedule": "interleaved"}, {}, "plan.schedule", "1f1b", "needs vpp above 1"),
    ({"dp": 5}, {}, "global_batch", 60, "multiple of dp 5 x micro_batch 2 = 10"),
    ({}, {"seq_len": 2**41}, "seq_len", 2**46 // 256, "too many bytes to be counted"),
    (
        {},
        {"micro_batch": 2**20, "global_batch": 2**21, "seq_len": 2**20},
        "micro_batch",
        2**26 // 256,
        "with seq_len 1048576",
    ),
    ({"pp": 3, "vpp": 2}, {}, "global_batch", 66, "gives 32 micro-batches a replica"),
    ({"gradient_dtype": "fp16"}, {}, "plan.gradient_dtype", "bf16", "fp32 or the training dtype bf16"),
]


@pytest.mark.parametrize(("plan", "batch", "key", "nearest", "words"), ONE_FAULT)
def test_one_fault(
    llama: Model, plan: dict[str, Any], batch: dict[str, Any], key: str, nearest: Any, words: str
) -> None:
    (fault,) = faults(llama, plan, **batch)
    assert (fault.key, fault.nearest) == (key, nearest)
    assert words in fault.rule
    # What it offers is legal.
    if key.startswith("plan."):
        plan = plan | {key.removeprefix("plan."): nearest}
    else:
        batch = batch | {key: nearest}
    assert key not in {f.key for f in faults(llama, plan, **batch)}


class TestTensorParallel:
    def test_every_shape_is_named(self, llama: Model) -> None:
        found = faults(llama, {"tp": 3})
        assert [f.key for f in found[:4]] == ["plan.tp"] * 4
        rules = " ".join(f.rule for f in found)
        for words in ("attention heads, 8", "hidden width, 256", "MLP width, 688", "4 key and value heads"):
            assert words in rules
        assert {f.nearest for f in found[:4]} == {2}

    def test_key_and_value_heads_may_be_repeated_but_not_torn(self, llama: Model) -> None:
        assert faults(llama, {"tp": 8}) == ()
        six = replace(llama, num_heads=12, num_kv_heads=6, hidden=384, ffn_hidden=1536)
        (fault,) = faults(six, {"tp": 4})
        assert (fault.nearest, fault.key) == (3, "plan.tp")
        assert "divide the 6 key and value heads" in fault.rule

    def test_heads_that_have_keys_of_their_own_are_told_once(self, llama: Model) -> None:
        found = faults(replace(llama, num_kv_heads=llama.num_heads), {"tp": 5}, seq_len=160)
        assert [fault.rule for fault in found if "heads" in fault.rule] == ["must divide the attention heads, 8"]

    def test_a_narrow_embedding(self, llama: Model) -> None:
        (fault,) = faults(replace(llama, embedding_dim=64), {"tp": 2})
        assert "not yet supported" in fault.rule


class TestDevices:
    def test_the_arithmetic_is_shown(self, llama: Model) -> None:
        (fault,) = faults(llama, {"tp": 8, "pp": 4, "dp": None}, num_devices=100)
        assert str(fault) == (
            "num_devices: 100 is not a multiple of 32: tp 8 x pp 4 x dp ? = 100 devices; nearest: 96 or 128"
        )

    def test_too_few(self, llama: Model) -> None:
        (fault,) = faults(llama, {"tp": 8, "pp": 4, "dp": None}, num_devices=8)
        assert fault.nearest == "32"

    def test_neither_given(self, llama: Model) -> None:
        (fault,) = faults(llama, {"tp": 8, "pp": 4, "dp": None})
        assert (fault.key, fault.nearest) == ("plan.dp", 1)

    def test_a_dp_that_does_not_fill_them(self, llama: Model) -> None:
        (fault,) = faults(llama, {"tp": 8, "dp": 2}, num_devices=32)
        assert (fault.key, fault.nearest) == ("plan.dp", 4)
        assert "tp 8 x pp 1 x dp 2 = 16" in fault.rule
        (fault,) = faults(llama, {"tp": 8, "dp": 2}, num_devices=30)
        assert (fault.key, fault.nearest) == ("num_devices", 16)


def test_positions_that_were_learned_have_an_end(gpt: Model, llama: Model) -> None:
    (fault,) = faults(gpt, {}, seq_len=256)
    assert (fault.key, fault.nearest) == ("seq_len", 128)
    assert faults(llama, {}, seq_len=256) == ()


def test_all_at_once_but_none_that_follows_from_another(llama: Model) -> None:
    found = faults(llama, {"tp": 0, "zero": 4, "recompute": "ful", "dp": None}, global_batch=0, num_devices=100)
    assert sorted(f.key for f in found) == ["global_batch", "plan.recompute", "plan.tp", "plan.zero"]


def test_an_own_schedule_is_no_name(llama: Model) -> None:
    assert faults(llama, {"schedule": lambda p, v, m: []}) == ()
