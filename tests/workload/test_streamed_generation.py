"""Generation with weights on drives: every pass reads all of them, and is as fast as the drives where they are slow."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.workload.op import Compute, Copy, Storage
from clustersim.workload.streamed_generation import streamed_generation

MODEL = "llama-3-8b"


def job(**changes: object) -> cs.Job:
    settings = {"batch": 8, "prompt": 64, "tokens": 4, **changes}
    return streamed_generation(cs.load_model(MODEL), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("direct", [True, False])
def test_each_pass_reads_all_weights_once(direct: bool) -> None:
    arrays = job(direct=direct).programs[0].arrays()
    ops = [arrays.ops[number] for number in arrays.op.tolist()]
    weights = 2 * cs.load_model(MODEL).num_parameters
    assert sum(op.nbytes for op in ops if isinstance(op, Storage)) == 4 * weights
    assert {op.direct for op in ops if isinstance(op, Storage)} == {direct}
    assert sum(op.nbytes for op in ops if isinstance(op, Copy)) == (0 if direct else 4 * weights)


def test_earlier_keys_and_values_are_read_by_each_further_token() -> None:
    """Of the prompt and the tokens before: 2 x 8 heads x 128 x 2 B, 8 sequences, 32 layers."""
    arrays = job().programs[0].arrays()
    ops = [arrays.ops[number] for number in arrays.op.tolist()]
    read = [op.nbytes for op in ops if isinstance(op, Compute) and op.name == "earlier keys and values"]
    each = 2 * 8 * 128 * 2 * 8
    assert read == [each * (64 + n) for n in (1, 2, 3) for _ in range(32)]
    assert job().programs[0].resident["gpu/keys and values"] == each * 68 * 32


def test_a_token_takes_what_the_drives_need_for_all_weights() -> None:
    cluster = cs.load_topology("azure-nc96ads-a100-v4")
    long, short = (cs.summary(cs.simulate(cluster, job(tokens=n), steps=1)) for n in (5, 4))
    rate = 4 * 3.0e9 * 0.93
    took = long["step_time_s"] - short["step_time_s"]
    assert took == pytest.approx(2 * cs.load_model(MODEL).num_parameters / rate, rel=0.02)
    assert long["tokens_per_s"] == pytest.approx(8 * 5 / long["step_time_s"])


def test_two_layers_are_on_the_gpu_at_a_time() -> None:
    held = cs.summary(cs.simulate(cs.load_topology("azure-nc96ads-a100-v4"), job(), steps=1))
    layer, head = 2 * 218_112_000, 2 * 128_256 * 4096
    assert layer + head < held["peak_memory_bytes"]["gpu"] < 2 * head + layer
