"""Clamps and biases of experts that are kernels of their own: bytes of their formulas, and the host that waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.library.model import load_model
from clustersim.workload.expert_shard import ExpertShard
from clustersim.workload.fusion import FUSED
from clustersim.workload.layers.expert_operators import CLAMPED, clamps, output_biases
from clustersim.workload.layers.experts import experts, experts_kept
from clustersim.workload.op import Compute, HostLaunch
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.shape.experts import Experts
from clustersim.workload.shard import Shard
from clustersim.workload.training_step import training_step

SHARE = ExpertShard(
    ep=4,
    etp=1,
    index=0,
    tokens=(300, 200),
    sent=400,
    dropless=True,
    gathers_maps=False,
    there=None,
    back=None,
    once=False,
    chunks=1,
    overlap_shared=False,
    fp8_dispatch=False,
    fp8_activation_input=False,
)
MODEL = load_model("gpt-oss-20b")
GPT_OSS = Shard(model=MODEL, tp=1, micro_batch=1, seq_len=1024, experts=SHARE)
BEHIND = ("clamp", "expert_bias")


def shape() -> Experts:
    assert MODEL.experts is not None
    return MODEL.experts


@pytest.mark.parametrize(("backward", "clamped", "added"), [(False, 8, 28), (True, 10, 40)])
def test_bytes_an_element(backward: bool, clamped: int, added: int) -> None:
    """Clamps pass over halves of 2 bytes; biases over results, in fp32 but for what is read and written."""
    (bounds,) = clamps(GPT_OSS, shape(), SHARE, backward=backward)
    (biases,) = output_biases(GPT_OSS, shape(), SHARE, backward=backward)
    assert 0 <= bounds.nbytes * bounds.count - 2 * clamped * 500 * 2880 < bounds.count
    assert 0 <= biases.nbytes * biases.count - added * 500 * 2880 < biases.count
    assert bounds.count == 3
    assert biases.count == (5 if backward else 2) * len(SHARE.tokens) + 2


def test_fused_or_absent_there_are_none() -> None:
    fused = replace(GPT_OSS, fusion=(*FUSED, *BEHIND))
    plain = replace(shape(), clamped=False, bias=False)
    for shard, of in ((fused, shape()), (GPT_OSS, plain)):
        assert not clamps(shard, of, SHARE)
        assert not output_biases(shard, of, SHARE)


def test_clamps_keep_what_they_read_and_what_they_write() -> None:
    kept = [sum(tensor.nbytes for tensor in experts_kept(replace(GPT_OSS, fusion=f))) for f in ((), ("clamp",))]
    assert kept[0] - kept[1] == 2 * 500 * 2 * 2880
    parts = [experts(replace(GPT_OSS, fusion=f)).parts[-2] for f in ((), ("clamp",))]
    assert parts[0].name == parts[1].name == "activation"
    assert parts[0].kept - parts[1].kept == 2 * 500 * 2 * 2880
    assert (len(parts[0].pieces), len(parts[1].pieces)) == (2, 1)


@pytest.mark.parametrize("again", [False, True])
def test_the_host_waits_behind_clamps(again: bool) -> None:
    """Once a layer forward, and once more where the activation is computed again."""
    model = replace(MODEL, num_layers=2)
    recompute: dict[str, Any] = {"recompute": "selective", "recompute_modules": ("activation",)} if again else {}
    waits = []
    for fusion in (FUSED, (*FUSED, *BEHIND)):
        plan = ParallelPlan(dp=4, launch="modules", wait_norm=False, fusion=fusion, **recompute)
        job = training_step(model, plan, global_batch=4, micro_batch=1, seq_len=128)
        arrays = job.programs[0].arrays()
        ops = [arrays.ops[k] for k in arrays.op]
        behind = [op.name for op in ops if isinstance(op, Compute) and op.name.startswith(CLAMPED)]
        assert len(behind) == ("clamp" not in fusion) * model.num_layers * (1 + again)
        waits.append(sum(op.waits for op in ops if isinstance(op, HostLaunch)))
    assert waits == [model.num_layers * (1 + again), 0]
