"""Words of a plan that are told to have no effect have none, and words that do nothing are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clustersim.library.job import JobSetup
from clustersim.library.keys import KEYS
from clustersim.study.point import run_point
from clustersim.trace.result import Result
from clustersim.workload.fusion import FUSED

# key -> (value, the rest of the plan, whether it acts)
FSDP: dict[str, Any] = {"plan.fsdp": True}
ZEROPP: dict[str, Any] = {"plan.zero": 3, "plan.zeropp": ("qwz", "hpz"), "plan.zeropp_ranks": 4}
SYNC: dict[str, Any] = {"plan.sync_every": 2}
ALONE: dict[str, Any] = {"plan.tp": 4, "plan.pp": 2}
EXPERTS: dict[str, Any] = {"model": "mixtral-8x7b", "seq_len": 64, "plan.tp": 8}
"""One replica, whose experts are held by each of its ranks."""
CASES: dict[str, list[tuple[Any, dict[str, Any], bool]]] = {
    "plan.placeholders": [("kept", {}, True), ("kept", FSDP, False), ("kept", {"plan.zero": 2}, False)],
    "plan.context": [("ring", {}, False), ("ring", {"plan.cp": 2}, True)],
    "plan.ulysses": [(2, {}, False), (2, {"plan.cp": 2}, False)],
    "plan.zero": [(1, ALONE, False), (1, EXPERTS, True), (2, FSDP, False), (1, SYNC, False), (1, {}, True)],
    "plan.fsdp": [(True, ALONE, False), (True, EXPERTS, True), (True, SYNC, False), (True, {}, True)],
    "plan.hsdp": [(2, {}, False), (2, FSDP, True)],
    "plan.prefetch": [(3, {}, False), (0, FSDP, True)],
    "plan.limit_gathers": [(False, {}, False)],
    "plan.gather_blocks": [(True, {}, False), (True, FSDP, True)],
    "plan.reduce_scatter": [
        (False, ALONE, False),
        (False, {}, False),
        (False, FSDP, True),
        (False, {"plan.zero": 1}, True),
    ],
    "plan.per_parameter": [(True, {}, False), (True, FSDP, True)],
    "plan.flat_parameters": [
        (True, {}, False),
        (True, {"plan.zero": 1, "plan.gradient_dtype": "bf16", "plan.reduce_dtype": "fp32"}, False),
        (True, {"plan.zero": 2}, True),
        (True, {"plan.zero": 3}, True),
        (True, ZEROPP, False),
        (True, FSDP | {"plan.per_parameter": True}, False),
        (True, FSDP, True),
    ],
    "plan.repeat_heads": [(True, {}, False)],
    "plan.split_projections": [(True, {}, True)],
    "plan.gather_cast": [
        (True, {"dtype": "fp8_current"}, False),
        (True, {"plan.tp": 2}, False),
        (True, {"plan.tp": 2, "dtype": "fp8_rowwise"}, False),
        (True, {"plan.tp": 2, "dtype": "fp8_current"}, True),
    ],
    "plan.time_steps": [
        (True, {}, False),
        (True, {"plan.pp": 2, "plan.tp": 1}, False),
        (True, {"plan.pp": 2, "plan.vpp": 2, "plan.schedule": "interleaved"}, True),
    ],
    "plan.batch_first": [
        (True, {}, False),
        (True, {"plan.tp": 2, "plan.sequence_parallel": False}, False),
        (True, {"plan.tp": 2}, True),
    ],
    "plan.logged_losses": [(2, {}, True)],
    "plan.gradient_passes": [(("average",), ALONE, False), (("average",), {}, True), (("check",), ALONE, True)],
    "plan.unaligned": [("vector", {}, False), ("vector", {"plan.attention": "unfused", "seq_len": 100}, True)],
    "plan.reshard": [(False, {}, False), (False, FSDP, True)],
    "plan.reduce_each": [
        (True, ALONE, False),
        (True, EXPERTS, True),
        (False, {}, False),
        (True, SYNC, False),
        (True, {}, True),
    ],
    "plan.gather_dtype": [
        ("fp32", {}, False),
        ("fp32", {"dtype": "fp8_blockwise"}, False),
        ("fp32", ALONE | {"plan.zero": 1}, False),
        ("fp32", ALONE | {"plan.zero": 1, "dtype": "fp8_blockwise"}, False),
        ("fp32", {"plan.zero": 1}, True),
    ],
    "plan.reduce_dtype": [("bf16", ALONE, False), ("bf16", EXPERTS, True), ("bf16", SYNC, False), ("bf16", {}, True)],
    "plan.zeropp_ranks": [(4, {}, False), (2, ZEROPP, True)],
    "plan.sync_ranks": [(2, {}, False), (2, SYNC, True)],
    "plan.sync_dtype": [("bf16", {}, False), ("bf16", SYNC, True)],
    "plan.sync_momentum": [(False, {}, False), (False, SYNC, True)],
    "plan.recompute_modules": [(("norm",), {}, False), (("norm",), {"plan.recompute": "selective"}, True)],
    "plan.recompute_layers": [(2, {}, False), (2, {"plan.recompute": "full"}, True)],
    "plan.recompute_early_stop": [(True, {}, False), (True, {"plan.recompute": "full"}, True)],
    "plan.sequence_parallel": [(True, {}, False), (False, {"plan.tp": 2}, True)],
    "plan.overlap_dp": [
        (False, ALONE, False),
        (False, EXPERTS, True),
        (False, FSDP, False),
        (False, SYNC, False),
        (False, {}, True),
        (False, {"plan.zero": 2}, True),
    ],
    "plan.overlap_refresh": [
        (False, {}, False),
        (False, FSDP, False),
        (False, {"plan.zero": 1, "plan.overlap_dp": False}, False),
        (False, {"plan.zero": 1, "steps": 2}, True),
    ],
    "plan.overlap_tp": [(False, {}, False), (False, {"plan.tp": 2}, True)],
    "plan.scatter_gather": [
        (True, {}, False),
        (True, {"plan.tp": 2}, False),
        (True, {"plan.tp": 2, "plan.pp": 2}, False),
        (True, {"plan.tp": 2, "plan.pp": 2, "plan.sequence_parallel": False}, True),
    ],
    "plan.tp_overlap": [("ring", {}, False), ("ring", {"plan.tp": 2}, True)],
    "plan.tp_overlap_chunks": [
        (2, {"plan.tp": 2, "plan.tp_overlap": "ring"}, False),
        (2, {"plan.tp": 2, "plan.tp_overlap": "pipeline"}, True),
    ],
    "plan.wait_norm": [(True, {}, False), (True, {"plan.launch": "modules"}, True)],
    "plan.wait_layers": [(True, {}, False), (True, {"plan.launch": "modules"}, True)],
    "plan.module_hooks": [(True, {}, False), (True, {"plan.launch": "layers"}, True)],
    "plan.wait_messages": [
        (True, {}, False),
        (True, {"plan.launch": "modules"}, False),
        (True, {"plan.launch": "modules", "plan.pp": 2}, True),
    ],
    "plan.wait_kernels": [(True, {}, False), (True, {"plan.launch": "modules"}, True)],
    "plan.memory_breakdown": [(True, {}, False), (True, {"plan.launch": "modules"}, True)],
    "plan.launch": [("eager", {}, True)],
    "plan.fusion": [
        (("loss", "gradients", "bias"), {}, False),
        (("gradients", "bias"), {}, True),
        (("loss", "gradients"), {}, True),
        (("loss", "gradients", "bias"), {"plan.dropout": True}, True),
        ((*FUSED, "clamp"), {}, False),
        ((*FUSED, "expert_bias"), {}, False),
        ((*FUSED, "residual_norm"), {}, True),
    ],
    "plan.loss": [("fused", {}, True)],
    "plan.clip": [(False, {}, True), (False, ALONE | {"plan.offload.policy": "twinflow"}, False)],
    "plan.update_kernels": [("foreach", {}, True)],
    "plan.module_dtypes": [
        (("attention:bf16",), {}, False),
        (("attention:bf16",), {"dtype": "fp8_current"}, True),
        (("attention:fp8",), {}, False),
        (("attention:fp8_current",), {"dtype": "fp8_current"}, False),
        (("experts:bf16",), {"dtype": "fp8_current"}, False),
    ],
    "plan.bf16_layers_at_start": [(1, {}, False), (1, {"dtype": "fp8_current"}, True)],
    "plan.bf16_layers_at_end": [(1, {}, False), (1, {"dtype": "fp8_current"}, True)],
    "plan.etp": [(2, {}, False)],
    "plan.capacity_factor": [(1.0, {}, False)],
    "plan.token_imbalance": [("zipf:1", {}, False)],
    "plan.token_seed": [(3, {}, False)],
    "plan.dispatch": [("deepep", {}, False)],
    "plan.overlap_dispatch": [(2, {}, False)],
    "plan.overlap_shared": [(True, {}, False)],
    "plan.fp8_dispatch": [(True, {}, False)],
}
FLAT = [(key, *case) for key, cases in CASES.items() for case in cases]


def told(result: Result, key: str) -> bool:
    return any(key in warning.partition(": ")[0] and "no effect" in warning for warning in result.warnings)


def same(one: Result, other: Result) -> bool:
    pairs = list(zip(one.record.lanes, other.record.lanes, strict=False))
    return len(one.record.lanes) == len(other.record.lanes) and all(
        np.array_equal(a.end_ns, b.end_ns) and a.arrays.resident == b.arrays.resident for a, b in pairs
    )


def test_every_word_is_a_key() -> None:
    assert CASES.keys() <= KEYS.keys()


@pytest.mark.parametrize(("key", "value", "others", "acts"), FLAT)
def test_told_if_and_only_if_it_does_nothing(
    tiny: JobSetup, key: str, value: Any, others: dict[str, Any], acts: bool
) -> None:
    setup = tiny.with_values({"global_batch": 32, **others})
    without, with_it = run_point(setup), run_point(setup.with_values({key: value}))
    assert told(with_it, key) is not acts
    assert same(without, with_it) is not acts
    idle = [warning.partition(":")[0] for warning in with_it.warnings if ": no effect" in warning]
    assert len(idle) == len(set(idle))


def test_a_word_of_a_list_that_does_nothing_is_told_beside_words_that_act(tiny: JobSetup) -> None:
    """A list says what is fused, so what it leaves out acts as well."""
    for words, idle in ((["clamp"], ["clamp"]), (["norm", "clamp", "expert_bias"], ["clamp", "expert_bias"])):
        warnings = run_point(tiny.with_values({"plan.fusion": words})).warnings
        told = [warning.split()[4] for warning in warnings if warning.startswith("plan.fusion: no effect of ")]
        assert told == [f"{word}:" for word in idle]
