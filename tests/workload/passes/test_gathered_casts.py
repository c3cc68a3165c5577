"""Tokens that are cast before the ranks that share a layer gather them."""

from __future__ import annotations

import pytest

import clustersim as cs
from clustersim.workload.op import Collective, Compute
from clustersim.workload.tensor_overlap import TpOverlap


def found(model: cs.Model, *, dtype: str, overlap: TpOverlap = "none", cast: bool = True) -> dict[str, int]:
    """Bytes of each collective among ranks of tp, and of the copies and passes around them, by name."""
    plan = cs.ParallelPlan(tp=2, overlap_tp=False, batch_first=True, tp_overlap=overlap, gather_cast=cast)
    job = cs.training_step(model, plan, global_batch=2, micro_batch=2, seq_len=256, dtype=dtype, num_devices=2)
    return {op.name: op.nbytes for op in job.programs[0].arrays().ops if isinstance(op, Collective | Compute)}


WHOLE = 2 * 256
"""Tokens."""


def test_one_scale_a_tensor_goes_in_its_own_format(llama: cs.Model) -> None:
    plain, cast = (found(llama, dtype="fp8_current", cast=c) for c in (False, True))
    gathered = {
        f"{kind} {what}" for kind in ("attention", "mlp") for what in ("input", "output gradient", "input again")
    }
    for what in gathered:
        assert cast[f"all-gather {what}"] == WHOLE * llama.hidden == plain[f"all-gather {what}"] // 2
        assert cast[f"copy of {what}"] == 2 * WHOLE * llama.hidden
    for what in ("reduce-scatter attention output", "reduce-scatter mlp input gradient", "all-gather head input"):
        assert cast[what] == plain[what] == 2 * WHOLE * llama.hidden
    assert cast["mlp forward"] < plain["mlp forward"]


@pytest.mark.parametrize("dtype", ["bf16", "fp8_rowwise", "fp8_blockwise"])
def test_others_go_in_16_bits(llama: cs.Model, dtype: str) -> None:
    assert found(llama, dtype=dtype) == found(llama, dtype=dtype, cast=False)


def test_so_do_parts(llama: cs.Model) -> None:
    plain, cast = (found(llama, dtype="fp8_current", overlap="ring", cast=c) for c in (False, True))
    assert 2 * cast["exchange mlp input"] == plain["exchange mlp input"] == WHOLE // 2 * 2 * llama.hidden
    assert cast["exchange mlp output"] == plain["exchange mlp output"]
