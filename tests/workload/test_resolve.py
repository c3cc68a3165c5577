from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from clustersim.faults import BadInput
from clustersim.workload.case import Case
from clustersim.workload.model import Model
from clustersim.workload.plan import ParallelPlan
from clustersim.workload.resolve import Resolved, resolve
from clustersim.workload.schedule import interleaved, one_f_one_b


def resolved(model: Model, num_devices: int | None = None, seq_len: int = 128, **plan: Any) -> Resolved:
    return resolve(
        Case(
            model=model,
            plan=ParallelPlan(**plan),
            global_batch=64,
            micro_batch=2,
            seq_len=seq_len,
            dtype="bf16",
            num_devices=num_devices,
        )
    )


def test_fills_in_what_is_open(llama: Model) -> None:
    found = resolved(llama, num_devices=32, tp=4, pp=2)
    assert (found.plan.dp, found.plan.schedule, found.plan.sequence_parallel) == (4, "1f1b", True)
    assert found.num_micro_batches == 8
    assert found.schedule is one_f_one_b
    assert found.notes == ()


def test_chunks_interleave(llama: Model) -> None:
    found = resolved(llama, dp=1, pp=2, vpp=2)
    assert found.plan.schedule == "interleaved"
    assert found.schedule is interleaved


def test_an_own_schedule_is_kept(llama: Model) -> None:
    def own(num_stages: int, num_virtual: int, num_micro_batches: int) -> Any:
        return one_f_one_b(num_stages, num_virtual, num_micro_batches)

    assert resolved(llama, dp=1, schedule=own).schedule is own


def test_raises_every_fault(llama: Model) -> None:
    with pytest.raises(BadInput) as caught:
        resolved(llama, dp=1, tp=0, zero=4)
    assert {f.key for f in caught.value.faults} == {"plan.tp", "plan.zero"}


@pytest.mark.parametrize(
    ("plan", "note"),
    [
        ({"dp": 1, "pp": 5}, "8 layers do not divide over 5 stages: split 1, 3 x 2, 1"),
        ({"dp": 1, "pp": 2, "vpp": 3}, "6 virtual stages (pp 2 x vpp 3)"),
        ({"dp": 1, "tp": 8}, "tp 8 is more than the 4 key and value heads: each is held by 2 ranks"),
        ({"dp": 1, "sequence_parallel": True}, "plan.sequence_parallel: no effect"),
        ({"dp": 1, "overlap_tp": False}, "plan.overlap_tp: no effect"),
        ({"dp": 1, "zero": 1}, "plan.zero: no effect"),
        ({"dp": 1, "bucket_bytes": 10}, "plan.bucket_bytes: no effect"),
        ({"dp": 2, "bucket_bytes": 10, "overlap_dp": False}, "plan.bucket_bytes: no effect"),
        ({"dp": 1, "recompute": "selective"}, "runs the flash attention kernel again"),
        ({"dp": 1, "seq_len": 256}, "seq_len 256 is longer than the 128 tokens"),
    ],
)
def test_notes(llama: Model, plan: dict[str, Any], note: str) -> None:
    (found,) = resolved(llama, **plan).notes
    assert note in found


def test_notes_on_the_model(llama: Model) -> None:
    (padded,) = resolved(replace(llama, vocab=1001), dp=1, tp=2).notes
    assert padded == "vocab 1001 padded to 1024, a multiple of 128 x tp 2"
